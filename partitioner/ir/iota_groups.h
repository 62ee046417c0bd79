// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_IOTA_GROUPS_H_
#define SHARDCALL_PARTITIONER_IR_IOTA_GROUPS_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/attributes.h"
#include "shardcall/sharding/context.h"

namespace shardcall {

// `[groups,size]<=[dims]T(perm)`.
struct IotaForm {
  absl::InlinedVector<int64_t, 8> dims, perm;
};

// Whether there are dims, positive and with that product, and perm permutes them; an empty
// perm is the identity.
bool IsIota(absl::Span<const int64_t> dims, absl::Span<const int64_t> perm, int64_t devices);

// As XLA writes it: dims of size 1 dropped, dims that stay neighbours merged, and no perm of
// a single dim. Requires IsIota.
IotaForm SimplifiedIota(absl::Span<const int64_t> dims, absl::Span<const int64_t> perm);

// The devices of each group, out of 0..devices-1 where all are one group; none where they
// name mesh axes, or are an iota that does not add up.
absl::optional<std::vector<std::vector<int64_t>>> ListedGroups(const ReplicaGroups& groups,
                                                               int64_t devices);

// `groups` in that form, if they are an iota at all; what is none stays for the verifier.
ReplicaGroups Simplified(const ReplicaGroups& groups, Arena& arena);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_IOTA_GROUPS_H_
