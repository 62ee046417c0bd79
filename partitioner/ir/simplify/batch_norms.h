// SPDX-License-Identifier: Apache-2.0
// Batch norms as the ops that they are made up of: their sums are then reduced over the devices
// that share a batch, as any other.
#ifndef SHARDCALL_PARTITIONER_IR_SIMPLIFY_BATCH_NORMS_H_
#define SHARDCALL_PARTITIONER_IR_SIMPLIFY_BATCH_NORMS_H_

#include <optional>

#include "shardcall/partitioner/ir/build/expansion.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// In f32, where the type is narrower. The variance is the mean of the squares of what the mean
// leaves, in a second pass, which loses fewer digits than the squares of all would. None for an
// empty batch.
std::optional<CallExpansion> ReadBatchNormTraining(const Module& module, InstrId id);
std::optional<CallExpansion> ReadBatchNormGrad(const Module& module, InstrId id);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SIMPLIFY_BATCH_NORMS_H_
