// SPDX-License-Identifier: Apache-2.0
// What targets declare of their calls beside the rule: sizes, ranges and scratch results that make
// no sense, or fit no rule of the target, are refused on registration.
#include "shardcall/partitioner/custom_call/call_limits.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The registration's error, and "" for none.
std::string Registered(const std::vector<std::string>& rules, CallLimits limits) {
  TargetRegistry targets;
  std::vector<RuleAlternative> alternatives;
  for (const std::string& rule : rules) alternatives.emplace_back().text.rule = rule;
  if (!rules.empty()) {
    const absl::Status status = targets.RegisterRules("k", std::move(alternatives));
    EXPECT_TRUE(status.ok()) << status;
  }
  return std::string(targets.RegisterCallLimits("k", std::move(limits)).message());
}

TEST(CallLimits, ThatMakeNoSenseAreE105) {
  EXPECT_THAT(Registered({}, {.sizes = {{"g", "4 h k"}}}),
              AllOf(HasSubstr("E105"), HasSubstr("4 h k")));
  EXPECT_THAT(Registered({}, {.sizes = {{"g", "4 h"}, {"h", "2 b"}}}), HasSubstr("that follows"));
  EXPECT_THAT(Registered({}, {.ranges = {{.operand = 0, .high = "0"}}}), HasSubstr("E105"));
  EXPECT_THAT(Registered({}, {.scratch = {-1}}), HasSubstr("E105"));
  TargetRegistry targets;
  EXPECT_EQ(DiagnosticCode(targets.RegisterCallLimits("", {})), "E105");
  EXPECT_TRUE(targets.RegisterCallLimits("k", {.sizes = {{"g", "4 h"}}}).ok());
  EXPECT_TRUE(targets.RegisterCallLimits("k", {.sizes = {{"g", "4 h"}}}).ok());
  EXPECT_EQ(DiagnosticCode(targets.RegisterCallLimits("k", {.sizes = {{"g", "5 h"}}})), "E105");
}

TEST(CallLimits, OfOneThingTwiceAreE105) {
  EXPECT_THAT(
      Registered({"m n -> m n, m n"}, {.scratch = {1, 1}}),
      AllOf(HasSubstr("E105"), HasSubstr("a scratch result is named twice"), HasSubstr("found 1")));
  EXPECT_THAT(Registered({}, {.sizes = {{"g", "4 h"}, {"g", "8"}}}),
              AllOf(HasSubstr("E105"), HasSubstr("factor g has two sizes")));
  EXPECT_THAT(
      Registered({}, {.ranges = {{.operand = 1, .high = "s"}, {.operand = 1, .high = "t"}}}),
      AllOf(HasSubstr("E105"), HasSubstr("operand 1 has two ranges")));
}

TEST(CallLimits, OfFactorsThatNoRuleHasAreE105) {
  for (const auto& [factor, formula] :
       {std::pair("q", "n"), std::pair("m", "q"), std::pair("q", "3"), std::pair("m", "2 q + 1")}) {
    EXPECT_THAT(Registered({"m n -> m n"}, {.sizes = {{factor, formula}}}),
                AllOf(HasSubstr("E105"), HasSubstr("fits none of its calls"),
                      HasSubstr(std::string("found ") + factor + " = " + formula)));
  }
  EXPECT_EQ(Registered({"m n -> m n"}, {.sizes = {{"m", "2 n"}}}), "");
  // Signatures may lack factors that others have, but one must have both.
  EXPECT_EQ(Registered({"m n -> m n", "m n, g -> m n g"}, {.sizes = {{"g", "4 n"}}}), "");
  EXPECT_THAT(Registered({"m n -> m n", "m, g -> m g"}, {.sizes = {{"g", "4 n"}}}),
              HasSubstr("found g = 4 n"));
}

TEST(CallLimits, OfOperandsAndResultsThatNoRuleHasAreE105) {
  EXPECT_EQ(Registered({"s d, i -> i d s"}, {.ranges = {{.operand = 1, .high = "s"}}}), "");
  EXPECT_THAT(Registered({"s d, i -> i d s"}, {.ranges = {{.operand = 2, .high = "s"}}}),
              AllOf(HasSubstr("E105"), HasSubstr("operand 2 in [0, s)")));
  EXPECT_THAT(Registered({"s d, i -> i d s"}, {.ranges = {{.operand = 1, .high = "z"}}}),
              HasSubstr("operand 1 in [0, z)"));
  EXPECT_EQ(Registered({"m n -> m n, m n"}, {.scratch = {1}}), "");
  EXPECT_THAT(Registered({"m n -> m n, m n"}, {.scratch = {2}}), HasSubstr("scratch result 2"));
  EXPECT_THAT(Registered({"m n -> m n, m n"}, {.scratch = {0, 1}}),
              HasSubstr("found scratch results alone"));
  EXPECT_EQ(Registered({"m n -> m n", "m n -> m n, m"}, {.scratch = {1}}), "");
}

TEST(CallLimits, OfATargetWhoseDimensionsAreNotKnownAreTaken) {
  TargetRegistry targets;
  ASSERT_TRUE(targets.RegisterBatchPartitionable("k", 1).ok());
  EXPECT_TRUE(targets.RegisterCallLimits("k", {.sizes = {{"g", "4 h"}}, .scratch = {3}}).ok());
}

}  // namespace
}  // namespace shardcall
