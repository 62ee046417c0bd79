// SPDX-License-Identifier: Apache-2.0
// For the tests of whoever registers targets; needs gmock.
//   EXPECT_THAT("my_norm", RuleHolds(targets, handlers));
//   EXPECT_THAT("row_solve", RuleHolds(targets, handlers).InProgram(hlo));
//   EXPECT_THAT((SpecifiedCall{.target = "my_norm", .mesh = "'x'=4,'y'=2",
//                              .operands = {"f32[8,16] [{'x'}, {'y'}]", "f32[16]"}}),
//               PartitionsInto(targets, {"[{'x'}, {}]"}, "all-gather=1, bytes<=1KiB"));
#ifndef SHARDCALL_PARTITIONER_CHECK_RULE_MATCHERS_H_
#define SHARDCALL_PARTITIONER_CHECK_RULE_MATCHERS_H_

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "shardcall/partitioner/api/partition_call.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/check/check_target.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Matches the name of a target whose rule holds: see CheckRule. If a target has a reference
// (partition_like) but no handler, the reference is checked. The registries must outlive the
// matcher. A failure prints the findings, or why the rule could not be checked.
class RuleHoldsMatcher {
 public:
  using is_gtest_matcher = void;
  RuleHoldsMatcher(const TargetRegistry& targets, const HandlerRegistry& handlers, uint64_t seed)
      : targets_(targets), handlers_(handlers), seed_(seed) {}

  // Checks the calls of the target in this HLO text rather than calls derived from its rule: for
  // targets with batch dims or callbacks, or that take only certain shapes.
  RuleHoldsMatcher InProgram(std::string hlo) const {
    RuleHoldsMatcher matcher(targets_, handlers_, seed_);
    matcher.program_ = std::move(hlo);
    return matcher;
  }

  template <typename Name>
  bool MatchAndExplain(const Name& target, std::ostream* out) const {
    const absl::StatusOr<RuleCheck> check = Check(std::string(target));
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
  absl::StatusOr<RuleCheck> Check(std::string target) const {
    TargetCheck check;
    check.target = std::move(target);
    check.seed = seed_;
    if (program_.empty()) return CheckTarget(check, targets_, handlers_);
    const absl::StatusOr<Module> module =
        ParseModule(std::make_shared<const std::string>(program_), std::make_shared<Context>(),
                    "RuleHolds", &targets_);
    if (!module.ok()) return module.status();
    const absl::Status valid = VerifyModule(*module, "RuleHolds");
    if (!valid.ok()) return valid;
    check.program = &*module;
    return CheckTarget(check, targets_, handlers_);
  }
  static bool Explain(const absl::Status& status, std::ostream* out) {
    if (out != nullptr) *out << std::string(status.message());
    return false;
  }
  const TargetRegistry& targets_;
  const HandlerRegistry& handlers_;
  uint64_t seed_;
  std::string program_;
};

inline RuleHoldsMatcher RuleHolds(const TargetRegistry& targets, const HandlerRegistry& handlers,
                                  uint64_t seed = 0) {
  return RuleHoldsMatcher(targets, handlers, seed);
}

// Matches a SpecifiedCall whose partitioned form has these result shardings, one text for each
// ("[{'x'}, {}]"), and satisfies a contract of CheckContract. Needs no kernel. A failure prints the
// actual shardings, and every collective with its cause.
class PartitionsIntoMatcher {
 public:
  using is_gtest_matcher = void;
  PartitionsIntoMatcher(const TargetRegistry& targets, std::vector<std::string> results,
                        std::string contract)
      : targets_(targets), results_(std::move(results)), contract_(std::move(contract)) {}

  bool MatchAndExplain(const SpecifiedCall& call, std::ostream* out) const {
    const absl::StatusOr<std::vector<ContractTerm>> terms = ParseContract(contract_);
    if (!terms.ok()) return Explain(terms.status(), out);
    std::vector<std::string> want;
    for (const std::string& text : results_) {
      const absl::StatusOr<std::string> canonical = CanonicalSharding(call, text);
      if (!canonical.ok()) return Explain(canonical.status(), out);
      want.push_back(*canonical);
    }
    const absl::StatusOr<CallPartitioning> got = PartitionCall(call, targets_);
    if (!got.ok()) return Explain(got.status(), out);
    const absl::Status kept = CheckContract(*terms, *got->program);
    if (got->results == want && kept.ok()) return true;
    if (out != nullptr) {
      *out << "whose results are";
      for (const std::string& text : got->results) *out << " " << text;
      *out << "\n";
      if (!kept.ok()) *out << std::string(kept.message()) << "\n";
      *out << shardcall::Explain(*got->program, SpmdOptions(), ExplainFormat::kText);
    }
    return false;
  }
  void DescribeTo(std::ostream* out) const { Describe("is", out); }
  void DescribeNegationTo(std::ostream* out) const { Describe("is not", out); }

 private:
  void Describe(const char* is, std::ostream* out) const {
    *out << is << " partitioned into results";
    for (const std::string& text : results_) *out << " " << text;
    if (!contract_.empty()) *out << " with " << contract_;
  }
  static bool Explain(const absl::Status& status, std::ostream* out) {
    if (out != nullptr) *out << std::string(status.message());
    return false;
  }
  const TargetRegistry& targets_;
  std::vector<std::string> results_;
  std::string contract_;
};

inline PartitionsIntoMatcher PartitionsInto(const TargetRegistry& targets,
                                            std::vector<std::string> results,
                                            std::string contract = "") {
  return PartitionsIntoMatcher(targets, std::move(results), std::move(contract));
}

inline void PrintTo(const SpecifiedCall& call, std::ostream* out) { *out << ProgramOf(call); }

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_CHECK_RULE_MATCHERS_H_
