// SPDX-License-Identifier: Apache-2.0
// One trial of a rule: a call with some of its factors sharded, partitioned by
// the rule and run, against the same call on one device.
#ifndef SHARDCALL_PARTITIONER_CHECK_RULE_TRIAL_H_
#define SHARDCALL_PARTITIONER_CHECK_RULE_TRIAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "shardcall/partitioner/check/checked_call.h"
#include "shardcall/partitioner/check/trial_process.h"
#include "shardcall/partitioner/runtime/tensor.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

struct RuleTrial {
  const CheckedCall* call = nullptr;
  std::vector<int64_t> sizes = {};                   // by factor
  std::vector<std::pair<int, int64_t>> shards = {};  // factor, devices along it
  // In place of `shards`, for callbacks: tensor, dimension, devices.
  std::vector<std::pair<std::pair<int, int>, int64_t>> dims = {};
  uint64_t seed = 0;
};

struct TrialResult {
  enum class Outcome {
    kHolds,
    kWrong,        // another result, or copies of a result that differ
    kRefused,      // the handler takes the whole call and refuses a shard
    kNotSharded,   // the partitioner did not shard as asked: nothing was tested
    kNoReference,  // the handler refuses the whole call
    kOutside,      // its results follow from what lies outside of its buffers
    kCrashed,      // it ended the process; the message goes on from "the handler"
    kLate          // it did not return before the deadline; likewise
  } outcome = Outcome::kHolds;
  std::string message;
};
using TrialOutcome = TrialResult::Outcome;

struct TrialOptions {
  const TargetRegistry* targets = nullptr;  // for callbacks
  const HandlerRegistry* handlers = nullptr;
  const HandlerRegistry* reference = nullptr;   // of the target; null: there is none
  absl::Duration deadline = absl::Seconds(20);  // of each kernel, and of each trial
  // Operands of the calls as they are given, in place of random ones. Then no other
  // sizes are tried.
  std::vector<Tensor> inputs = {};
  // Set by whoever checks: where trials run, and handlers that read what lies before
  // their buffers where `handlers` are fenced behind them. Null: here; the same.
  TrialProcess* process = nullptr;
  const HandlerRegistry* fenced_before = nullptr;
};

// What every check runs its trials with: the given options with fenced handlers and a
// process, or as they are where they have one.
class TrialRun {
 public:
  explicit TrialRun(const TrialOptions& given);
  const TrialOptions& options() const { return options_; }

 private:
  TrialOptions options_;
  std::optional<HandlerRegistry> behind_, before_;
  std::optional<TrialProcess> process_;
};

// Whether the handler takes the call on one device: kHolds, kRefused, kOutside, kCrashed
// or kLate.
TrialResult HandlerTakes(const CheckedCall& call, const std::vector<int64_t>& sizes,
                         const TrialOptions& options);
// The call on one device by handlers and by reference, with both kinds of inputs.
TrialResult AgainstReference(const CheckedCall& call, const std::vector<int64_t>& sizes,
                             uint64_t seed, const TrialOptions& options);
TrialResult RunTrial(const RuleTrial& trial, const TrialOptions& options);
// Whether other elements in the operands that have the factor give other results. Of
// those that random numbers do not reach (behind indices that fit nothing), every rule
// holds.
bool DependsOn(const CheckedCall& call, const std::vector<int64_t>& sizes, int factor,
               uint64_t seed, const TrialOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_RULE_TRIAL_H_
