// SPDX-License-Identifier: Apache-2.0
// Trials of one factor of a call over 2, 3 and 4 devices, and the search for a valid kind of it.
#ifndef SHARDCALL_PARTITIONER_CHECK_FACTOR_TRIALS_H_
#define SHARDCALL_PARTITIONER_CHECK_FACTOR_TRIALS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "shardcall/partitioner/check/call_sizes.h"
#include "shardcall/partitioner/check/check_rule.h"
#include "shardcall/partitioner/check/rule_trial.h"

namespace shardcall {
inline namespace internal {

class FactorTrials {
 public:
  struct Failure {
    RuleTrial trial;  // without its call, which may be destroyed earlier
    TrialResult result;
  };
  struct Tested {
    int runs = 0, uneven = 0;  // `uneven`: runs with a size that the devices do not divide
    std::string reason = "the handler takes no two sizes of it";
    std::string uneven_reason = "the handler takes none";
    std::optional<Failure> failure;
    bool holds() const { return runs > 0 && !failure.has_value(); }
  };
  static constexpr int64_t kDevices[] = {2, 3, 4};

  // All must outlive this object; counts, and faults of the handler, go to `out`.
  FactorTrials(CallSizes* sizes, uint64_t seed, const TrialOptions& options, RuleCheck* out)
      : sizes_(*sizes), seed_(seed), options_(options), out_(*out) {}

  // Runs the trial with small integers, with positive fractions, and where the devices do not
  // divide a size with negative ones. True if one of them was compared.
  bool Try(RuleTrial trial, Tested* tested);
  // Tests factor `f` over 2, 3 and 4 devices. Shards have the first tile size for which the handler
  // takes the whole and the shard. The whole is tested with that size, one less, and so small that
  // the last device has nothing. `call` has the sizes, and perhaps another rule.
  Tested TestFactor(const CheckedCall& call, int f);
  // `call` with another kind of factor `f` that passes the trials; if there is none, with the
  // factor replicated, if that is wanted.
  std::optional<CheckedCall> Better(const CheckedCall& call, int f, bool with_replication);

 private:
  // TestFactor for the given call with a size of 0, if there is one.
  std::optional<Failure> TestEmpty(const CheckedCall& call, int f);
  // TestFactor with only the call's own sizes.
  Tested TestGiven(const CheckedCall& call, int f);

  CallSizes& sizes_;
  const uint64_t seed_;
  const TrialOptions& options_;
  RuleCheck& out_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_FACTOR_TRIALS_H_
