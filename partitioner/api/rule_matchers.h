// SPDX-License-Identifier: Apache-2.0
// For the tests of whoever registers targets; needs gmock.
//   EXPECT_THAT("my_norm", RuleHolds(targets, handlers));
#ifndef SHARDCALL_PARTITIONER_API_RULE_MATCHERS_H_
#define SHARDCALL_PARTITIONER_API_RULE_MATCHERS_H_

#include <ostream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "partitioner/api/check_rule.h"
#include "partitioner/api/reference.h"

namespace shardcall {

// Matches the name of a target whose rule holds: see CheckRule. A target without a
// handler that has a reference (partition_like) is checked by that. The registries
// must outlive the matcher. A failure prints the findings, or why the rule could
// not be checked.
class RuleHoldsMatcher {
 public:
  using is_gtest_matcher = void;
  RuleHoldsMatcher(const TargetRegistry& targets, const HandlerRegistry& handlers, uint64_t seed)
      : targets_(targets), handlers_(handlers), seed_(seed) {}

  template <typename Name>
  bool MatchAndExplain(const Name& target, std::ostream* out) const {
    const absl::StatusOr<CheckRegistries> by =
        RegistriesForCheck(std::string(target), targets_, handlers_);
    if (!by.ok()) return Explain(by.status(), out);
    const absl::StatusOr<std::vector<CheckedCall>> calls =
        CallsOfTarget(std::string(target), targets_, by->handlers);
    if (!calls.ok()) return Explain(calls.status(), out);
    const absl::StatusOr<RuleCheck> check = CheckRule(
        *calls, seed_,
        {.targets = &targets_, .handlers = &by->handlers,
         .reference = by->reference.has_value() ? &*by->reference : nullptr});
    if (!check.ok()) return Explain(check.status(), out);
    if (check->verdict == RuleVerdict::kHolds) return true;
    if (out != nullptr) *out << RuleCheckJson(*check);
    return false;
  }
  void DescribeTo(std::ostream* out) const { *out << "is a target whose sharding rule holds"; }
  void DescribeNegationTo(std::ostream* out) const {
    *out << "is a target whose sharding rule does not hold";
  }

 private:
  static bool Explain(const absl::Status& status, std::ostream* out) {
    if (out != nullptr) *out << std::string(status.message());
    return false;
  }
  const TargetRegistry& targets_;
  const HandlerRegistry& handlers_;
  uint64_t seed_;
};

inline RuleHoldsMatcher RuleHolds(const TargetRegistry& targets, const HandlerRegistry& handlers,
                                  uint64_t seed = 0) {
  return RuleHoldsMatcher(targets, handlers, seed);
}

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_RULE_MATCHERS_H_
