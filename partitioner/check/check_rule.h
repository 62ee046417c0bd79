// SPDX-License-Identifier: Apache-2.0
// Proves a custom call's sharding rule on its handler. Every factor that the rule lets a
// partitioner shard is sharded over 2, 3 and 4 devices, in even and uneven sizes, alone and in
// pairs, and the results are compared with one device. Factors that the rule does not shard are
// tried too: one that could be sharded is missing from the rule.
//
// The handler runs in a process of its own (trial_process.h), with inaccessible pages around its
// buffers (kernels/ffi/guard/guarded_call.h). The shapes are derived only from the rule and the
// target's CallLimits. A handler for certain shapes should reject others; a crash, or a read
// outside of its buffers, counts as a rejection. If it takes no call at all, that is a finding
// about the handler (kHandlerFault), not the rule.
#ifndef SHARDCALL_PARTITIONER_CHECK_CHECK_RULE_H_
#define SHARDCALL_PARTITIONER_CHECK_CHECK_RULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/check/rule_trial.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// From mild to severe. A needless rule is correct, but makes programs send more than a better one:
// it reduces over a value that every device has whole, blocks a factor that could pass through, or
// separates dimensions that must have one size (so that they stay whole). Needless callbacks make
// each device send more bytes than a valid rule, between the same shardings. If a handler crashes,
// leaves its buffers or does not return on the unsharded call, the rule is not judged.
enum class RuleVerdict : uint8_t { kHolds, kNeedless, kMissing, kIncorrect, kHandlerFault };
// "holds", "needless", ..., "handler_fault"
absl::string_view RuleVerdictName(RuleVerdict verdict);

struct RuleFinding {
  RuleVerdict verdict = RuleVerdict::kHolds;
  std::string rule;    // as checked, with its special factors
  std::string factor;  // at fault; for callbacks "operand 0, dimension 1"
  std::string message;
  // The smallest failing call; empty and 0 if none fails.
  std::string signature;  // "(f32[4,8], f32[8]) -> f32[4,8]"
  std::string backend_config;
  std::vector<std::pair<std::string, int64_t>> shards;  // factor, devices
  uint64_t seed = 0;
  std::string suggestion;  // a rule that passes, if one was found
  // Of a rule that nobody wrote, that of a VJP which follows from its target's: it is right, and a
  // better one could be written. It does not count in the verdict.
  bool advice = false;
};

struct RuleCheck {
  std::string target;
  RuleVerdict verdict = RuleVerdict::kHolds;  // the most severe
  std::vector<RuleFinding> findings;          // most severe first, advice last
  int64_t trials = 0;                         // runs that were compared
  // Properties that no run could test, and why: "j: ...", "j, uneven sizes: ...". A rule that holds
  // and has no entries was tested in even and uneven sizes of every factor.
  std::vector<std::string> untested;
};

// Sorts the findings, most severe first, and sets the verdict.
void SortFindings(RuleCheck* check);

// {"verdict": .., "factor": .., "suggestion": .., "findings": [..], ..}: the fields of the first
// finding, then all findings.
std::string RuleCheckJson(const RuleCheck& check);

// Error E190: the handler takes none of the calls that were tried. `seed` determines the random
// inputs.
absl::StatusOr<RuleCheck> CheckRule(const std::vector<CheckedCall>& calls, uint64_t seed,
                                    const TrialOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_CHECK_RULE_H_
