// SPDX-License-Identifier: Apache-2.0
// One trial of a rule: a call with some of its factors sharded is partitioned by the rule and run,
// and compared with the same call on one device.
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
  // For callbacks, instead of `shards`: tensor, dimension, devices.
  std::vector<std::pair<std::pair<int, int>, int64_t>> dims = {};
  uint64_t seed = 0;
  bool negative = false;  // floats are the negatives of what they are for an odd seed
};

struct TrialResult {
  enum class Outcome {
    kHolds,
    kWrong,        // another result, or copies of a result differ
    kRefused,      // the handler takes the whole call but rejects a shard
    kNotSharded,   // the partitioner did not shard as asked: nothing was tested
    kNoReference,  // the handler rejects the whole call
    kNoCall,       // there is no call in these sizes: an attribute's formula gives no value
    kOutside,      // its results depend on memory outside of its buffers
    kCrashed,      // it ended the process; the message continues after "the handler"
    kLate          // it did not return before the deadline; message likewise
  } outcome = Outcome::kHolds;
  std::string message;
};
using TrialOutcome = TrialResult::Outcome;

struct TrialOptions {
  const TargetRegistry* targets = nullptr;  // for callbacks
  const HandlerRegistry* handlers = nullptr;
  const HandlerRegistry* reference = nullptr;   // of the target; null if there is none
  absl::Duration deadline = absl::Seconds(20);  // of each kernel, and of each trial
  // The operands of the calls, rather than random ones. Then no other sizes are tried.
  std::vector<Tensor> inputs = {};
  // Set by the checker. `process`: where trials run; null: in this process. `fenced_before`:
  // handlers with fences before their buffers, if those of `handlers` are after them; null: the
  // same.
  TrialProcess* process = nullptr;
  const HandlerRegistry* fenced_before = nullptr;
};

// The environment of a check's trials: the given options with fenced handlers and a process added,
// unless they have them already.
class TrialRun {
 public:
  TrialRun(const TrialOptions& given, absl::Span<const CheckedCall> calls);
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
// Compares the call on one device by the handler and by the reference, with both kinds of inputs.
TrialResult AgainstReference(const CheckedCall& call, const std::vector<int64_t>& sizes,
                             uint64_t seed, const TrialOptions& options);
TrialResult RunTrial(const RuleTrial& trial, const TrialOptions& options);
// Whether the results depend on the elements of operands with this factor. If random inputs have no
// effect (such as data behind indices that are out of range), a trial would accept every rule.
bool DependsOn(const CheckedCall& call, const std::vector<int64_t>& sizes, int factor,
               uint64_t seed, const TrialOptions& options);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_RULE_TRIAL_H_
