// SPDX-License-Identifier: Apache-2.0
// Finds callbacks that send more than needed. All dimensions that a rule proven on the handler can
// shard are sharded, and the bytes that each device sends with the callbacks are compared with
// those of the rule. Both programs begin and end in the same shardings.
#ifndef SHARDCALL_PARTITIONER_CHECK_CALLBACK_COSTS_H_
#define SHARDCALL_PARTITIONER_CHECK_CALLBACK_COSTS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "shardcall/partitioner/check/improvements.h"

namespace shardcall {
inline namespace internal {

class CallbackCosts {
 public:
  // All must outlive this object.
  CallbackCosts(CallSizes* sizes, FactorTrials* trials, uint64_t seed, const TrialOptions& options)
      : sizes_(*sizes), trials_(*trials), seed_(seed), options_(options) {}

  FindingsByName Find();

 private:
  using Sizes = CallSizes::Sizes;
  using GroupRule = std::pair<std::vector<int>, CheckedCall>;

  // Rules that hold for one factor, or for a group of factors that share a size.
  std::vector<GroupRule> Rules();
  // Compares the call's callbacks with `better`, with `factors` sharded.
  void Compare(const CheckedCall& better, const std::vector<int>& factors);
  // Bytes that each device sends; -1 if the call cannot be partitioned.
  double BytesSent(const CheckedCall& call, const Sizes& sizes,
                   const CheckedCall::Mesh& mesh) const;

  CallSizes& sizes_;
  FactorTrials& trials_;
  const uint64_t seed_;
  const TrialOptions& options_;
  const CheckedCall& call_ = sizes_.call();
  FindingsByName found_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_CALLBACK_COSTS_H_
