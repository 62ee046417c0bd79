// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_RUN_ORDER_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_RUN_ORDER_H_

#include <vector>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The instructions of a computation in the order in which XLA:CPU runs them (its breadth-first
// scheduler): each when its operands are there, first come, first served. What is fused with its
// users, by instruction, and reshapes run at once.
std::vector<InstrId> BreadthFirstOrder(const Module& m, CompId c, const std::vector<bool>& fused);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_RUN_ORDER_H_
