// SPDX-License-Identifier: Apache-2.0
// The trials of one call: which sizes its handler takes, each factor over 2, 3
// and 4 devices, factors in pairs, and what rules hold in place of a wrong one.
#ifndef SHARDCALL_PARTITIONER_API_CALL_CHECKER_H_
#define SHARDCALL_PARTITIONER_API_CALL_CHECKER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "partitioner/api/check_rule.h"

namespace shardcall {

class CallChecker {
 public:
  // All must outlive the checker; findings and counts go to `out`.
  CallChecker(const CheckedCall& call, uint64_t seed, const TrialOptions& options, RuleCheck* out)
      : call_(call), seed_(seed), options_(options), out_(*out) {}

  // Finds what is incorrect. E190 if the handler takes no sizes.
  absl::Status Run();
  // After Run: factors that the rule keeps whole and that could be sharded.
  std::map<std::string, RuleFinding> Missing();

 private:
  using Sizes = std::vector<int64_t>;
  struct Failure {
    RuleTrial trial;
    TrialResult result;
  };
  struct Tested {
    int runs = 0;
    std::string reason = "the handler takes no two sizes of it";
    std::optional<Failure> failure;
  };

  int NumFactors() const { return static_cast<int>(call_.rule.factors.size()); }
  // Whether it can be sharded before any other in every dimension it is part of.
  bool IsMajor(int f) const;
  bool InEveryResult(int f) const;
  bool InAnOperand(int f) const;

  bool Takes(const Sizes& sizes, std::string* message = nullptr);
  // Sizes that the handler takes: small and distinct, if it can be.
  absl::Status FindSizes();
  Sizes With(int factor, int64_t size) const;
  // The trial with both kinds of inputs. True if one of them was compared.
  bool Try(RuleTrial trial, Tested* tested);
  // One factor over 2, 3 and 4 devices: shards of the first tile size at which
  // the handler takes the whole and the shard, then a whole that is one less,
  // then one that leaves the last device nothing.
  Tested TestFactor(const CheckedCall& call, int f);
  void CheckPairs(const std::vector<int>& factors);
  // A variant of the rule that holds for factor `f`.
  std::optional<CheckedCall> Better(int f, bool with_replication);
  void Report(int f, const Failure& failure);
  void CheckCallbacks();

  const CheckedCall& call_;
  const uint64_t seed_;
  const TrialOptions& options_;
  RuleCheck& out_;
  Sizes base_;
  std::map<Sizes, std::pair<bool, std::string>> takes_;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_CALL_CHECKER_H_
