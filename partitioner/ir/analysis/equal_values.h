// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_EQUAL_VALUES_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_EQUAL_VALUES_H_

#include <vector>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// By instruction, an earlier one of its computation that makes the same value: the same op of the
// same operands, by value numbering. Invalid where there is none, for what has a side effect, draws
// numbers or runs computations as control flow, for barriers, custom calls and collectives. Linear.
std::vector<InstrId> EqualValues(const Module& module);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_EQUAL_VALUES_H_
