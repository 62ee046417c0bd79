// SPDX-License-Identifier: Apache-2.0
// Finds rules that are correct, but that a better rule exists for.
#ifndef SHARDCALL_PARTITIONER_CHECK_IMPROVEMENTS_H_
#define SHARDCALL_PARTITIONER_CHECK_IMPROVEMENTS_H_

#include <map>
#include <string>
#include <vector>

#include "shardcall/partitioner/check/call_sizes.h"
#include "shardcall/partitioner/check/factor_trials.h"

namespace shardcall {
inline namespace internal {

using FindingsByName = std::map<std::string, RuleFinding>;  // by kind and factor

class Improvements {
 public:
  // `sound`: the factors that passed all trials. All must outlive this object.
  Improvements(CallSizes* sizes, FactorTrials* trials, const std::vector<int>& sound)
      : sizes_(*sizes), trials_(*trials), sound_(sound) {}

  // Factors that need replication in the rule but could be sharded (missing), and properties of
  // the rule that make it send more than needed (needless).
  FindingsByName Find();

 private:
  void FindMissing();
  void FindNeedless();
  void FindOneAsSeveral();
  void Add(RuleVerdict verdict, const std::string& factor, std::string message,
           const CheckedCall& better);

  CallSizes& sizes_;
  FactorTrials& trials_;
  const std::vector<int>& sound_;
  const CheckedCall& call_ = sizes_.call();
  FindingsByName found_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_IMPROVEMENTS_H_
