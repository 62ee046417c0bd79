// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_PASSED_SUMS_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_PASSED_SUMS_H_

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Which ops that multiply, divide or contract a sum pass it on. The result for a part may be NaN or
// infinite, or a zero of the other sign, though that for the sum is not.
enum class PassedProducts {
  kNone,
  // By a constant that is positive and finite: a part that is -0, which adds nothing, stays so.
  kByPositiveConstants,
  kAll,
};

// Whether the op passes on a sum that its operand is: if the operand is a sum of parts, and each
// part is given to the op in place of it, beside the same other operands, then the results add up
// to the op's result. It is linear in the operand, and its type holds the results of the parts.
bool PassesSum(const Module& m, InstrId id, int operand, PassedProducts products);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_PASSED_SUMS_H_
