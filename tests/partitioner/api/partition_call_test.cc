// SPDX-License-Identifier: Apache-2.0
// Targets tested without a kernel: from the shardings of operands to those of results
// and to collectives.
#include "shardcall/partitioner/api/partition_call.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/check/rule_matchers.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/sharding/base/status.h"
#include "tests/support/test_targets.h"

namespace shardcall {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMesh[] = "'x'=4,'y'=2";

class PartitionCallTest : public testing::Test {
 protected:
  PartitionCallTest() {
    EXPECT_TRUE(targets_
                    .RegisterRule("product", {.rule = "m k, k n -> m n",
                                              .reduction = {{"k", PartialOp::kSum}},
                                              .pad = {{"k", 0}}})
                    .ok());
    EXPECT_TRUE(
        targets_.RegisterRule("norm", {.rule = "... d, d -> ... d, ...", .need_replication = {"d"}})
            .ok());
    EXPECT_TRUE(targets_.RegisterBatchPartitionable("rows", 1).ok());
  }
  SpecifiedCall Product(const char* a, const char* b) {
    return {.target = "product",
            .mesh = kMesh,
            .operands = {std::string("f32[8,6] ") + a, std::string("f32[6,10] ") + b}};
  }
  static std::string Why(const SpecifiedCall& call, const PartitionsIntoMatcher& matcher) {
    testing::StringMatchResultListener listener;
    return testing::ExplainMatchResult(matcher, call, &listener) ? "matches" : listener.str();
  }
  TargetRegistry targets_;
};

TEST_F(PartitionCallTest, WhatPassesStaysAndWhatIsSummedIsReduced) {
  EXPECT_THAT(Product("[{'x'}, {}]", "[{}, {'y'}]"),
              PartitionsInto(targets_, {"[{'x'}, {'y'}]"}, "bytes=0"));
  // 2 rows by 10 columns of f32, over groups of 2: 2 (g-1)/g of 80 bytes.
  EXPECT_THAT(Product("[{'x'}, {'y'}]", "[{'y'}, {}]"),
              PartitionsInto(targets_, {"[{'x'}, {}]"}, "all-reduce=1, all-gather=0, bytes=80"));
  EXPECT_THAT(Product("[{}, {}]", "[{}, {}]"), PartitionsInto(targets_, {"[{}, {}]"}, "bytes=0"));
}

TEST_F(PartitionCallTest, WhatMustBeWholeIsGathered) {
  const SpecifiedCall norm = {
      .target = "norm", .mesh = kMesh, .operands = {"f32[8,16] [{'x'}, {'y'}]", "f32[16]"}};
  EXPECT_THAT(norm, PartitionsInto(targets_, {"[{'x'}, {}]", "[{'x'}]"}, "all-gather=1"));
  EXPECT_THAT(norm, Not(PartitionsInto(targets_, {"[{'x'}, {'y'}]", "[{'x'}]"})));
}

TEST_F(PartitionCallTest, BatchDimsAndCallbacksSayTheShapesOfResults) {
  EXPECT_THAT((SpecifiedCall{.target = "rows",
                             .mesh = kMesh,
                             .operands = {"f32[9,6] [{'x'}, {'y'}]"},
                             .results = {"f32[9,6]"}}),
              PartitionsInto(targets_, {"[{'x'}, {}]"}, "all-gather=1"));
  EXPECT_THAT((SpecifiedCall{.target = "test_twice",
                             .mesh = "'x'=2",
                             .operands = {"f32[8] [{'x'}]"},
                             .results = {"f32[8]"}}),
              PartitionsInto(TestTargets(), {"[{'x'}]"}, "bytes=0"));
}

TEST_F(PartitionCallTest, AUserOfTheResultSaysHowItWantsIt) {
  SpecifiedCall call = Product("[{'x'}, {'y'}]", "[{'y'}, {}]");
  call.results = {"f32[8,10] [{'x'}, {'y'}]"};
  EXPECT_THAT(call, PartitionsInto(targets_, {"[{'x'}, {'y'}]"}, "reduce-scatter=1, bytes=40"));
}

TEST_F(PartitionCallTest, AFailureSaysWhatIsAndWhy) {
  const std::string why = Why(Product("[{'x'}, {'y'}]", "[{'y'}, {}]"),
                              PartitionsInto(targets_, {"[{}, {}]"}, "all-reduce=0"));
  EXPECT_THAT(why, AllOf(HasSubstr("whose results are [{'x'}, {}]"), HasSubstr("E221"),
                         HasSubstr("all-reduce is 1"), HasSubstr("for  result 0 of %call")));
}

TEST_F(PartitionCallTest, WhatCannotBeReadIsToldWithItsCode) {
  const auto whole = PartitionsInto(targets_, {"[{}, {}]"});
  EXPECT_THAT(Why({.target = "none", .mesh = kMesh, .operands = {"f32[4]"}, .results = {"f32[4]"}},
                  PartitionsInto(targets_, {"[{}]"})),
              testing::StartsWith("matches"));  // nothing is sharded
  EXPECT_THAT(
      Why({.target = "none", .mesh = kMesh, .operands = {"f32[4] [{'x'}]"}, .results = {"f32[4]"}},
          whole),
      HasSubstr("E101"));
  EXPECT_THAT(Why({.target = "none", .mesh = kMesh, .operands = {"f32[4]"}}, whole),
              AllOf(HasSubstr("E112"), HasSubstr("RegisterShapeInference")));
  EXPECT_THAT(Why(Product("[{'z'}, {}]", "[{}, {}]"), whole), HasSubstr("E162"));
  EXPECT_THAT(Why(Product("[{}, {}]", "[{}]"), whole), HasSubstr("E025"));
  EXPECT_THAT(Why({.target = "rows", .mesh = "4", .operands = {"f32[4]"}}, whole),
              HasSubstr("E16"));
  EXPECT_THAT(Why(Product("[{}, {}]", "[{}, {}]"), PartitionsInto(targets_, {"[{'q'}, {}]"})),
              HasSubstr("E162"));
  EXPECT_THAT(
      Why(Product("[{}, {}]", "[{}, {}]"), PartitionsInto(targets_, {"[{}, {}]"}, "gathers=0")),
      HasSubstr("E220"));
}

constexpr char kRows[] = R"(HloModule m
ENTRY main {
  x = f32[4,6] parameter(0)
  ROOT y = f32[4,6] custom-call(x), custom_call_target="TARGET", api_version=API_VERSION_TYPED_FFI
})";
std::string Calling(const std::string& target) {
  std::string text = kRows;
  return text.replace(text.find("TARGET"), 6, target);
}

TEST(RuleHolds, TakesAProgramForBatchDimsAndCallbacks) {
  EXPECT_THAT("test_row_scan",
              RuleHolds(TestTargets(), TestHandlers()).InProgram(Calling("test_row_scan")));
  EXPECT_THAT("test_twice",
              RuleHolds(TestTargets(), TestHandlers()).InProgram(Calling("test_twice")));
  EXPECT_THAT("test_row_scan", Not(RuleHolds(TestTargets(), TestHandlers())));  // E191
  testing::StringMatchResultListener why;
  EXPECT_FALSE(testing::ExplainMatchResult(
      RuleHolds(TestTargets(), TestHandlers()).InProgram("HloModule"), "test_twice", &why));
  EXPECT_THAT(why.str(), HasSubstr("E0"));
}

}  // namespace
}  // namespace shardcall
