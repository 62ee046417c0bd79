// SPDX-License-Identifier: Apache-2.0
// Proof of a target's VJP: its gradients against finite differences of the
// target itself on one device, then the VJP's rule as CheckRule does.
#ifndef SHARDCALL_PARTITIONER_CHECK_CHECK_VJP_H_
#define SHARDCALL_PARTITIONER_CHECK_CHECK_VJP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/check/check_rule.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Central differences at steps of 1/16 and 1/32, extrapolated (Richardson), at up
// to about 12 elements of each operand that has a gradient, in two points: of mixed
// signs, and positive. An element where the two steps disagree lies beside a kink
// and is left out. A finding names the operand ("operand 1"). Where the VJP is a
// target with a handler, what CheckRule finds of its rule follows. options.targets
// is required. Errors E118: no VJP is registered; E190: the handler takes no call
// with float operands.
absl::StatusOr<RuleCheck> CheckVjp(const std::vector<CheckedCall>& calls, uint64_t seed,
                                   const TrialOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_CHECK_VJP_H_
