// SPDX-License-Identifier: Apache-2.0
// Whether the constraints that a target declares of its calls (call_limits.h) name factors,
// operands and results of its rules.
#ifndef SHARDCALL_PARTITIONER_CUSTOM_CALL_LIMITS_FIT_H_
#define SHARDCALL_PARTITIONER_CUSTOM_CALL_LIMITS_FIT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {
inline namespace internal {

// All signatures of the rules that the target has, of whatever backend_config.
std::vector<const RuleAlternative*> SignaturesOf(absl::string_view target,
                                                 const TargetRegistry& targets);

// E105 for a size, range or scratch result, `what`, that fits none of the target's calls.
absl::Status FitsNoCall(absl::string_view target, std::string what);

// Whether some of these signatures of the target have the factors of each size, and the operand and
// factors of each range; and whether one has each scratch result, and others besides. E105 if none
// does. A target without signatures (batch dims, callbacks) says too little to tell.
absl::Status CheckLimitsFit(const CallLimits& limits, absl::string_view target,
                            absl::Span<const RuleAlternative* const> signatures);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CUSTOM_CALL_LIMITS_FIT_H_
