// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_LIST_ORDER_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_LIST_ORDER_H_

#include <vector>

#include "shardcall/partitioner/ir/memory/run_steps.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The steps in the order of a list scheduler that keeps memory low, as XLA has one: of those whose
// operands are there, the one that frees most, less what it makes; of equals that which more steps
// read, and of these the one whose place in the list changed last.
std::vector<int> ListOrder(const Module& m, const RunSteps& steps);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_LIST_ORDER_H_
