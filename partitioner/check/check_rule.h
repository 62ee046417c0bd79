// SPDX-License-Identifier: Apache-2.0
// Proof of a custom call's sharding rule by its handler: every factor that the
// rule lets a partitioner shard is sharded over 2, 3 and 4 devices, in even and
// uneven sizes, alone and in pairs, and the results are held against one
// device. What the rule forbids is tried too: a factor that could be sharded
// after all is missing from it.
//
// The handler runs in a process of its own (trial_process.h), between pages that may not
// be touched (kernels/ffi/guard/guarded_call.h), and with shapes that follow from the rule and
// the target's CallLimits alone. One that is written for others should refuse them;
// where it crashes instead, or reads outside of its buffers, it has not taken them. If
// it takes no call at all, that is a finding of the handler (kHandlerFault), not of the
// rule.
#ifndef SHARDCALL_PARTITIONER_CHECK_CHECK_RULE_H_
#define SHARDCALL_PARTITIONER_CHECK_CHECK_RULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/check/rule_trial.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Mild to grave. A needless rule is right and makes programs send what a better
// one does not: it reduces over what every device has whole, blocks what passes,
// or keeps dimensions apart (and so whole) that are one. Needless callbacks make each
// device send more bytes than a rule that holds, from and to the same shardings.
// Of a handler that crashes, leaves its buffers or does not return, whole as the call
// is, nothing is said about the rule.
enum class RuleVerdict : uint8_t { kHolds, kNeedless, kMissing, kIncorrect, kHandlerFault };
// "holds", "needless", ..., "handler_fault"
absl::string_view RuleVerdictName(RuleVerdict verdict);

struct RuleFinding {
  RuleVerdict verdict = RuleVerdict::kHolds;
  std::string rule;    // as checked, with its special factors
  std::string factor;  // at fault; of callbacks "operand 0, dimension 1"
  std::string message;
  // The smallest that fails; empty and 0 where nothing does.
  std::string signature;  // "(f32[4,8], f32[8]) -> f32[4,8]"
  std::string backend_config;
  std::vector<std::pair<std::string, int64_t>> shards;  // factor, devices
  uint64_t seed = 0;
  std::string suggestion;  // a rule that holds, where one was found
};

struct RuleCheck {
  std::string target;
  RuleVerdict verdict = RuleVerdict::kHolds;  // the gravest
  std::vector<RuleFinding> findings;          // gravest first
  int64_t trials = 0;                         // runs that were compared
  // What no run could try, and why: "j: ...", "j, uneven sizes: ...". A rule that holds
  // and has none of these was tried in even and uneven sizes of every factor.
  std::vector<std::string> untested;
};

// The gravest first, and the verdict from it.
void SortFindings(RuleCheck* check);

// {"verdict": .., "factor": .., "suggestion": .., "findings": [..], ..}: of the
// first finding, then all.
std::string RuleCheckJson(const RuleCheck& check);

// Errors E190: the handler takes no call that was tried. The random inputs
// follow from `seed`.
absl::StatusOr<RuleCheck> CheckRule(const std::vector<CheckedCall>& calls, uint64_t seed,
                                    const TrialOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_CHECK_RULE_H_
