// SPDX-License-Identifier: Apache-2.0
// Custom calls that are HLO ops under another name, as the ops they stand for.
//
// XLA runs these calls itself, wherever it partitions. As ops they have rules and strategies here,
// and every engine can run them. What the calls mean, with x along `dimension` of n rows (found by
// running them under jaxlib 0.10.2 and 0.12.0):
//   _SPMDInternalOp_RotateRight  row j is x[(j - amount) mod n]
//   _SPMDInternalOp_MultiRotate  left_amount + right_amount + 1 results; of result k, row j is
//                                x[(j + left_amount - k) mod n]
//   _SPMDInternalOp_Wrap         n + left_amount + right_amount rows; row j is
//                                x[(j - left_amount) mod n]
//   _SPMDInternalOp_MultiSlice   amount + 1 results; of result k, the slice begins and ends k rows
//                                later along `dimension`
//   _SPMDInternalOp_MultiPad     amt + 1 results; result k has amt - k rows of operand 1 before x
//                                and k rows after it
//   TopK                         HLO's topk of the last dimension, largest first
//   X64Combine                   low + 2^32 high of u32; low + high of f32
//   X64SplitLow, X64SplitHigh    the operands of X64Combine
//   __op$block_scaled_dot        the product of two operands, of which each block of the contracted
//                                dimension has a scale
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_EXPANDED_CALLS_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_EXPANDED_CALLS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The module with the calls of targets that have one of these traits, kIsOp or kRunsAsOps,
// expanded (expansion.h); empty if there are none. Errors: E177, a call that does not say what its
// target needs.
absl::StatusOr<absl::optional<Module>> ExpandCalls(const Module& module, uint32_t traits);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_EXPANDED_CALLS_H_
