// SPDX-License-Identifier: Apache-2.0
// Which operands an op may write its result over, as XLA has it.
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_IN_PLACE_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_IN_PLACE_H_

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "shardcall/partitioner/ir/memory/leaf_views.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Whether an op may do so.
bool MayOverwrite(const Module& m, InstrId id);

// The leaves of which `id`, with what is computed on the way to it (`fused`, by instruction), reads
// nothing but the element that it writes; of a dynamic-update-slice and a scatter also what they
// change.
absl::flat_hash_set<ValueLeaf> LeavesReadInPlace(const Module& m, const std::vector<bool>& fused,
                                                 InstrId id);

// The leaves that a call says its results are written over. A ragged-all-to-all writes over its
// second operand.
std::vector<ValueLeaf> LeavesOverwrittenByCall(const Module& m, InstrId id);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_IN_PLACE_H_
