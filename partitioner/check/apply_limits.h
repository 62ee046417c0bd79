// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_CHECK_APPLY_LIMITS_H_
#define SHARDCALL_PARTITIONER_CHECK_APPLY_LIMITS_H_

#include <vector>

#include "absl/status/status.h"
#include "shardcall/partitioner/check/checked_call.h"

namespace shardcall {
inline namespace internal {

// Applies the sizes, ranges and scratch results that the target of the calls declares
// (custom_call/call_limits.h). Signatures of a target may lack some of the factors; E105 if all
// calls lack one.
absl::Status ApplyLimits(const TargetRegistry& targets, std::vector<CheckedCall>* calls);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_APPLY_LIMITS_H_
