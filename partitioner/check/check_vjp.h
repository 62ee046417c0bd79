// SPDX-License-Identifier: Apache-2.0
// Proves a target's VJP: compares its gradients with finite differences of the target itself on one
// device, then checks the VJP's rule like CheckRule.
#ifndef SHARDCALL_PARTITIONER_CHECK_CHECK_VJP_H_
#define SHARDCALL_PARTITIONER_CHECK_CHECK_VJP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/check/check_rule.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Central differences with steps of 1/16 and 1/32, extrapolated (Richardson), for up to about 12
// elements of each operand with a gradient, at two points: one with mixed signs, one positive.
// Elements for which the two steps disagree are near a kink and are skipped. A finding names the
// operand ("operand 1"). If the VJP is a target with a handler, CheckRule's findings for its rule
// are appended. options.targets is required. Errors: E118 if no VJP is registered; E190 if the
// handler takes no call with float operands.
absl::StatusOr<RuleCheck> CheckVjp(const std::vector<CheckedCall>& calls, uint64_t seed,
                                   const TrialOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_CHECK_VJP_H_
