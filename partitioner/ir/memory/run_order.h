// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_RUN_ORDER_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_RUN_ORDER_H_

#include <vector>

#include "shardcall/partitioner/ir/memory/fused_ops.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The instructions of a computation in the order in which XLA:CPU runs them (its breadth-first
// scheduler): each when its operands are there, first come, first served. Reshapes and what is
// fused with its users run at once; what an op computes on the way it does not wait for, so that it
// may stand behind the op.
std::vector<InstrId> BreadthFirstOrder(const Module& m, CompId c, const FusedOps& fusion);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_RUN_ORDER_H_
