// SPDX-License-Identifier: Apache-2.0
// Custom-call targets for tests, each with a rule of one level and a host
// handler for f32 and s32:
//   test_negate   batch_dims=2: -x of the last dims too, elementwise
//   test_row_scan batch_dims=1: running sum along the last dimension
//   test_sum      rule "b d -> b", sum over d (padding must be 0)
//   test_sum_even the same rule without pad value: uneven d is E150
//   test_scale    rule "b d, d -> b d", x * scale
//   test_twice    callbacks: 2x, any sharding of the operand
//   test_total    callbacks: sum over dimension 0 with an all-reduce of its own
#ifndef SHARDCALL_TESTS_SUPPORT_TEST_TARGETS_H_
#define SHARDCALL_TESTS_SUPPORT_TEST_TARGETS_H_

#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {

const TargetRegistry& TestTargets();
const HandlerRegistry& TestHandlers();

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SUPPORT_TEST_TARGETS_H_
