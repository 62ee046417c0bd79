// SPDX-License-Identifier: Apache-2.0
// Proof of a custom call's sharding rule by its handler: every factor that the
// rule lets a partitioner shard is sharded over 2, 3 and 4 devices, in even and
// uneven sizes, alone and in pairs, and the results are held against one
// device. What the rule forbids is tried too: a factor that could be sharded
// after all is missing from it.
//
// The handler runs in this process, and with shapes that follow from the rule
// alone: one that a rule of other ranks or sizes is written for must refuse
// them, as any handler should. Its buffers are guarded (kernels/ffi/guarded_call.h):
// one that does not, and writes beyond them, has refused (E318).
#ifndef SHARDCALL_PARTITIONER_API_CHECK_RULE_H_
#define SHARDCALL_PARTITIONER_API_CHECK_RULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "partitioner/api/rule_trial.h"

namespace shardcall {

// Mild to grave. A needless rule is right and makes programs send what a better
// one does not: it reduces over what every device has whole, blocks what passes,
// or keeps dimensions apart (and so whole) that are one. Needless callbacks make each
// device send more bytes than a rule that holds, from and to the same shardings.
enum class RuleVerdict : uint8_t { kHolds, kNeedless, kMissing, kIncorrect };
absl::string_view RuleVerdictName(RuleVerdict verdict);  // "holds", "needless", ...

struct RuleFinding {
  RuleVerdict verdict = RuleVerdict::kHolds;
  std::string rule;        // as checked, with its special factors
  std::string factor;      // at fault; of callbacks "operand 0, dimension 1"
  std::string message;
  // The smallest that fails; empty and 0 where nothing does.
  std::string signature;   // "(f32[4,8], f32[8]) -> f32[4,8]"
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
  std::vector<std::string> untested;          // factors no run could shard, and why
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

#endif  // SHARDCALL_PARTITIONER_API_CHECK_RULE_H_
