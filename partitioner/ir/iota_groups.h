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
inline namespace internal {

// `[groups,size]<=[dims]T(perm)`.
struct IotaForm {
  absl::InlinedVector<int64_t, 8> dims, perm;
};

// Whether there are dims, all positive, whose product is `devices`, and perm permutes them; an
// empty perm is the identity.
bool IsIota(absl::Span<const int64_t> dims, absl::Span<const int64_t> perm, int64_t devices);

// The form that XLA prints: dims of size 1 dropped, dims that stay neighbours merged, and no perm
// for a single dim. Requires IsIota.
IotaForm SimplifiedIota(absl::Span<const int64_t> dims, absl::Span<const int64_t> perm);

// `groups` as an iota, or as lists, if they name axes of a mesh: mesh['a'=4,'b'=2] {'b'} is
// [4,2]<=[8]. Members of a group are in the order of the axes, major to minor. Other groups stay as
// they are. Nullopt if the text of the mesh does not parse.
absl::optional<ReplicaGroups> WithoutMeshAxes(const ReplicaGroups& groups, Arena& arena);

// The devices of each group; if all devices are one group, 0..devices-1. Nullopt for an invalid
// mesh or iota.
absl::optional<std::vector<std::vector<int64_t>>> ListedGroups(const ReplicaGroups& groups,
                                                               int64_t devices);

// `groups` in simplified form if they are a valid iota; an invalid one is left for the verifier.
ReplicaGroups Simplified(const ReplicaGroups& groups, Arena& arena);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_IOTA_GROUPS_H_
