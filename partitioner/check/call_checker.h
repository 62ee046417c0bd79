// SPDX-License-Identifier: Apache-2.0
// All trials of one call, in their order: the handler against the reference and the shape function,
// each factor, pairs of factors or the callbacks; then what would send less.
#ifndef SHARDCALL_PARTITIONER_CHECK_CALL_CHECKER_H_
#define SHARDCALL_PARTITIONER_CHECK_CALL_CHECKER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "shardcall/partitioner/check/call_sizes.h"
#include "shardcall/partitioner/check/check_rule.h"
#include "shardcall/partitioner/check/factor_trials.h"
#include "shardcall/partitioner/check/improvements.h"

namespace shardcall {
inline namespace internal {

class CallChecker {
 public:
  // All must outlive the checker; findings and counts go to `out`.
  CallChecker(const CheckedCall& call, uint64_t seed, const TrialOptions& options, RuleCheck* out)
      : sizes_(call, seed, options, out),
        trials_(&sizes_, seed, options, out),
        seed_(seed),
        options_(options),
        out_(*out) {}

  // Finds errors of the rule. E190 if the handler takes no sizes.
  absl::Status Run();
  // After Run: what could be better.
  FindingsByName FindImprovements();

  bool faulty() const { return sizes_.faulty(); }

 private:
  // Compares the target's shape function, if any, with the results' shapes.
  void CheckShapes();
  void CheckFactor(int f);
  void CheckPairs();
  // Tests the sound factors of a program's call in its own sizes, of which those tested before are
  // small parts: a handler may work in tiles that smaller arrays do not fill.
  void CheckInGivenSizes();
  void Report(int f, const FactorTrials::Failure& failure);
  void CheckCallbacks();
  // Tests one dimension of operand t, in these sizes, over 2, 3 and 4 devices. False on failure.
  bool CheckCallbacksDim(const CallSizes::Sizes& sizes, int t, int dim);

  CallSizes sizes_;
  FactorTrials trials_;
  const CheckedCall& call_ = sizes_.call();
  const CallSizes::Sizes& base_ = sizes_.base();
  const uint64_t seed_;
  const TrialOptions& options_;
  RuleCheck& out_;
  std::vector<int> sound_;  // factors that passed all trials
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_CALL_CHECKER_H_
