// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_PASS_ALIKE_REDUCTIONS_H_
#define SHARDCALL_PARTITIONER_PASS_ALIKE_REDUCTIONS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Whether it is an all-reduce of one array of at most so many bytes that may run with others.
bool IsJoinable(const Instruction& i, int64_t most_bytes);

// By member, groups of at least two all-reduces of arrays of at most so many bytes each, in their
// order: of one type, by the same computation and over the same devices, so that none of the
// results is read before the last of them.
using ReductionGroup = std::shared_ptr<std::vector<InstrId>>;
using ReductionGroups = absl::flat_hash_map<InstrId, ReductionGroup>;
ReductionGroups FindAlikeReductions(const Module& m, int64_t most_bytes);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_ALIKE_REDUCTIONS_H_
