// SPDX-License-Identifier: Apache-2.0
// Handlers under the rule checker that crash, leave their buffers, never return, or take
// only calls whose sizes and elements stand in a relation.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/check/check_rule.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;
using Views = absl::Span<const BufferView>;
using Kernel = std::function<std::string(Views in, Views out)>;  // a message refuses

const RuleVerdict kHolds = RuleVerdict::kHolds;
const RuleVerdict kIncorrect = RuleVerdict::kIncorrect;

float* F(const BufferView& v) { return static_cast<float*>(v.data); }

HostHandler Handler(Kernel kernel) {
  return [kernel](const HandlerContext&, Views in, Views out) -> absl::Status {
    const std::string refusal = kernel(in, out);
    return refusal.empty() ? absl::OkStatus() : absl::InvalidArgumentError(refusal);
  };
}

std::string Identity(Views in, Views out) {
  if (in[0].dims != out[0].dims) return "operand and result differ in shape";
  std::copy_n(F(in[0]), in[0].num_elements(), F(out[0]));
  return "";
}

std::string RowSums(Views in, Views out) {
  const int64_t r = in[0].dims[0], c = in[0].dims[1];
  if (out[0].dims[0] != r) return "one result a row";
  for (int64_t i = 0; i < r; ++i) {
    F(out[0])[i] = 0;
    for (int64_t j = 0; j < c; ++j) F(out[0])[i] += F(in[0])[i * c + j];
  }
  return "";
}

// A target "k" that is checked by its registration, or in a program.
class CheckedHandler {
 public:
  CheckedHandler(RuleText rule, Kernel kernel) {
    EXPECT_TRUE(targets_.RegisterRule("k", std::move(rule)).ok());
    HandlerEntry entry;
    entry.target = "k";
    entry.host = Handler(std::move(kernel));
    EXPECT_TRUE(handlers_.Register(std::move(entry)).ok());
  }
  void Limit(CallLimits limits) {
    const absl::Status s = targets_.RegisterCallLimits("k", std::move(limits));
    EXPECT_TRUE(s.ok()) << s;
  }
  // `hlo`: the entry's lines; empty: by the registration alone.
  absl::StatusOr<RuleCheck> Check(const std::string& hlo = "", TrialOptions options = {}) const {
    options.targets = &targets_;
    options.handlers = &handlers_;
    if (hlo.empty()) {
      SHARDCALL_ASSIGN_OR_RETURN(const auto calls, CallsOfTarget("k", targets_, handlers_));
      return CheckRule(calls, 0, options);
    }
    SHARDCALL_ASSIGN_OR_RETURN(
        const Module module,
        ParseModule(std::make_shared<const std::string>("HloModule m\n\nENTRY e {\n" + hlo + "}\n"),
                    std::make_shared<Context>(), "test.hlo"));
    SHARDCALL_ASSIGN_OR_RETURN(const auto calls, CallsOfModule("k", targets_, module));
    return CheckRule(calls, 0, options);
  }
  RuleCheck Get(const std::string& hlo = "", TrialOptions options = {}) const {
    auto check = Check(hlo, std::move(options));
    EXPECT_TRUE(check.ok()) << check.status();
    return check.ok() ? *check : RuleCheck();
  }

 private:
  TargetRegistry targets_;
  HandlerRegistry handlers_;
};

// out[b, h] = x[b, h] + the four gates of (b, h), which lie 4 h a row. It looks at no
// extent but those of x.
std::string Gates(Views in, Views out) {
  const int64_t rows = in[0].dims[0], h = in[0].dims[1];
  for (int64_t i = 0; i < rows * h; ++i) {
    float x = F(in[0])[i];
    for (int64_t g = 0; g < 4; ++g) x += F(in[1])[i / h * 4 * h + g * h + i % h];
    F(out[0])[i] = x;
  }
  return "";
}
const RuleText kGates = {.rule = "b h, b g -> b h", .need_replication = {"h", "g"}};
std::string GatesCall(int rows, int h) {
  const std::string x = absl::StrCat("f32[", rows, ",", h, "]");
  return absl::StrCat("  x = ", x, " parameter(0)\n  g = f32[", rows, ",", 4 * h,
                      "] parameter(1)\n  ROOT c = ", x,
                      " custom-call(x, g), custom_call_target=\"k\", "
                      "api_version=API_VERSION_TYPED_FFI\n");
}

TEST(CheckRuleHandlers, SizesOfAGivenCallKeepTheirRelation) {
  for (int h : {4, 16, 48}) {
    const RuleCheck check = CheckedHandler(kGates, Gates).Get(GatesCall(16, h));
    EXPECT_EQ(check.verdict, kHolds) << RuleCheckJson(check);
    EXPECT_GT(check.trials, 20);
    EXPECT_THAT(check.untested, testing::IsEmpty());
  }
}

TEST(CheckRuleHandlers, SizesThatAreStatedAreKept) {
  CheckedHandler gates(kGates, Gates);
  gates.Limit({.sizes = {{"g", "4 h"}}});
  const RuleCheck check = gates.Get();
  EXPECT_EQ(check.verdict, kHolds) << RuleCheckJson(check);
  EXPECT_GT(check.trials, 20);
  EXPECT_THAT(check.untested, testing::IsEmpty());
}

TEST(CheckRuleHandlers, AHandlerThatReadsOutsideIsToldFromAWrongRule) {
  // Nothing says that g is 4 h, and no sizes that are tried have it so.
  const RuleCheck check = CheckedHandler(kGates, Gates).Get();
  EXPECT_EQ(check.verdict, RuleVerdict::kHandlerFault) << RuleCheckJson(check);
  ASSERT_EQ(check.findings.size(), 1u);
  EXPECT_THAT(check.findings[0].message,
              testing::AllOf(HasSubstr("the handler of \"k\" crashes (SIGSEGV): it reads "),
                             HasSubstr("past the end of operand 1, f32["), HasSubstr("\"sizes\"")));
  EXPECT_THAT(check.findings[0].signature, HasSubstr("f32[4,"));
  EXPECT_THAT(RuleCheckJson(check), HasSubstr("\"verdict\": \"handler_fault\""));
  // A rule that is wrong stays one where the handler keeps to its buffers.
  CheckedHandler wrong({.rule = "b h, b g -> b h", .need_replication = {"g"}}, Gates);
  wrong.Limit({.sizes = {{"g", "4 h"}}});
  const RuleCheck found = wrong.Get();
  EXPECT_EQ(found.verdict, kIncorrect) << RuleCheckJson(found);
  EXPECT_EQ(found.findings[0].factor, "h");
}

// Rows of a table by indices that it trusts.
std::string Take(Views in, Views out) {
  if (in[1].type != ElementType::kS32 || in[0].type != ElementType::kF32) return "f32 and s32";
  if (in[1].dims[0] != out[0].dims[0] || in[0].dims[1] != out[0].dims[1]) return "shapes";
  const int64_t d = in[0].dims[1];
  for (int64_t i = 0; i < in[1].dims[0]; ++i) {
    const int64_t row = static_cast<const int32_t*>(in[1].data)[i];
    std::copy_n(F(in[0]) + row * d, d, F(out[0]) + i * d);
  }
  return "";
}
const RuleText kTake = {.rule = "s d, n -> n d", .need_replication = {"s"}, .pad = {{"n", 0}}};
constexpr char kTakeCall[] =
    "  x = f32[3,5] parameter(0)\n  i = s32[6] parameter(1)\n  ROOT c = f32[6,5] "
    "custom-call(x, i), custom_call_target=\"k\", api_version=API_VERSION_TYPED_FFI\n";

TEST(CheckRuleHandlers, ACrashIsAFindingWithTargetAndCall) {
  const RuleCheck check = CheckedHandler(kTake, Take).Get(kTakeCall);
  EXPECT_EQ(check.verdict, RuleVerdict::kHandlerFault) << RuleCheckJson(check);
  EXPECT_EQ(check.target, "k");
  ASSERT_EQ(check.findings.size(), 1u);
  EXPECT_THAT(check.findings[0].message,
              testing::AllOf(HasSubstr("SIGSEGV"), HasSubstr("operand 0, f32[3,5]"),
                             HasSubstr("\"ranges\"")));
  EXPECT_EQ(check.findings[0].signature, "(f32[3,5], s32[6]) -> f32[6,5]");

  const RuleCheck aborts =
      CheckedHandler({.rule = "i -> i"}, [](Views, Views) -> std::string { std::abort(); }).Get();
  EXPECT_EQ(aborts.verdict, RuleVerdict::kHandlerFault) << RuleCheckJson(aborts);
  EXPECT_THAT(aborts.findings[0].message, HasSubstr("crashes (SIGABRT)"));
  const RuleCheck exits =
      CheckedHandler({.rule = "i -> i"}, [](Views, Views) -> std::string { _exit(3); }).Get();
  EXPECT_THAT(exits.findings[0].message, HasSubstr("ends the process (status 3)"));
}

TEST(CheckRuleHandlers, IndicesStayInTheirRange) {
  for (const char* hlo : {"", kTakeCall}) {
    CheckedHandler take(kTake, Take);
    take.Limit({.ranges = {{.operand = 1, .high = "s"}}});
    const RuleCheck check = take.Get(hlo);
    EXPECT_EQ(check.verdict, kHolds) << RuleCheckJson(check);
    EXPECT_GT(check.trials, 20);
    EXPECT_THAT(check.untested, testing::IsEmpty());
  }
  // Padding is no index, unless the rule says so.
  CheckedHandler trusts({.rule = "s d, n -> n d", .need_replication = {"s"}}, Take);
  trusts.Limit({.ranges = {{.operand = 1, .high = "s"}}});
  const RuleCheck padded = trusts.Get();
  EXPECT_EQ(padded.verdict, kIncorrect) << RuleCheckJson(padded);
  EXPECT_THAT(padded.findings[0].message,
              HasSubstr("given a shard, the handler of \"k\" crashes (SIGSEGV)"));
  EXPECT_EQ(padded.findings[0].suggestion, "s d, n -> n d need_replication={s} pad={n:0}");
  // With the table cut, indices of the whole lie outside of a shard.
  CheckedHandler cut({.rule = "s d, n -> n d", .blocked = {"s"}, .pad = {{"n", 0}}}, Take);
  cut.Limit({.ranges = {{.operand = 1, .high = "s"}}});
  const RuleCheck check = cut.Get();
  EXPECT_EQ(check.verdict, kIncorrect) << RuleCheckJson(check);
  EXPECT_EQ(check.findings[0].factor, "s");
}

TEST(CheckRuleHandlers, GivenInputsAreTakenAsTheyAre) {
  TrialOptions options;
  std::vector<float> x(15);
  for (int k = 0; k < 15; ++k) x[k] = static_cast<float>(k);
  options.inputs = {Tensor::From(ElementType::kF32, {3, 5}, x),
                    Tensor::From(ElementType::kS32, {6}, std::vector<int32_t>{0, 1, 2, 2, 1, 0})};
  const RuleCheck check = CheckedHandler(kTake, Take).Get(kTakeCall, options);
  EXPECT_EQ(check.verdict, kHolds) << RuleCheckJson(check);
  EXPECT_GT(check.trials, 4);
  EXPECT_EQ(check.findings.size(), 0u);
  options.inputs.pop_back();
  EXPECT_THAT(std::string(CheckedHandler(kTake, Take).Check(kTakeCall, options).status().message()),
              HasSubstr("E313"));
}

TEST(CheckRuleHandlers, AHandlerThatDoesNotReturnIsAFindingInTime) {
  TrialOptions options;
  options.deadline = absl::Milliseconds(300);
  const CheckedHandler never({.rule = "i -> i"}, [](Views, Views) -> std::string {
    while (true) absl::SleepFor(absl::Seconds(1));
  });
  const absl::Time start = absl::Now();
  const RuleCheck check = never.Get("", options);
  EXPECT_LT(absl::Now() - start, absl::Seconds(60));
  EXPECT_EQ(check.verdict, RuleVerdict::kHandlerFault) << RuleCheckJson(check);
  EXPECT_THAT(check.findings[0].message, HasSubstr("has not returned within"));
}

TEST(CheckRuleHandlers, WhatRanInNoUnevenSizesIsUntested) {
  // Takes multiples of 8 alone.
  const RuleCheck check = CheckedHandler({.rule = "i -> i"}, [](Views in, Views out) {
                            if (in[0].dims[0] % 8 != 0) return std::string("multiples of 8");
                            return Identity(in, out);
                          }).Get();
  EXPECT_EQ(check.verdict, kHolds) << RuleCheckJson(check);
  EXPECT_THAT(check.untested, testing::ElementsAre(HasSubstr("i, uneven sizes: ")));
  // A sum without a pad is refused in uneven sizes (E150).
  const RuleCheck sum =
      CheckedHandler({.rule = "i j -> i", .reduction = {{"j", PartialOp::kSum}}}, RowSums).Get();
  EXPECT_THAT(sum.untested, testing::ElementsAre(
                                testing::AllOf(HasSubstr("j, uneven sizes: "), HasSubstr("E150"))));
}

TEST(CheckRuleHandlers, PartsOfAResultThatAreLeftUnwrittenAreFound) {
  const RuleCheck check = CheckedHandler({.rule = "i -> i"}, [](Views in, Views out) {
                            if (in[0].type != ElementType::kF32) return std::string("f32");
                            std::copy_n(F(in[0]), in[0].dims[0] - 1, F(out[0]));
                            return std::string();
                          }).Get();
  EXPECT_EQ(check.verdict, RuleVerdict::kHandlerFault) << RuleCheckJson(check);
  EXPECT_THAT(check.findings[0].message, HasSubstr("unwritten"));
}

std::string SumCall(int rows, int columns) {
  return absl::StrCat("  x = f32[", rows, ",", columns, "] parameter(0)\n  ROOT c = f32[", rows,
                      "] custom-call(x), custom_call_target=\"k\", "
                      "api_version=API_VERSION_TYPED_FFI\n");
}
const RuleText kSums = {
    .rule = "i j -> i", .reduction = {{"j", PartialOp::kSum}}, .pad = {{"j", 0}}};

TEST(CheckRuleHandlers, AGivenSizeOf0IsASizeAndNotAnOpenOne) {
  // The kernel wants at least one column, and the given call has none.
  const CheckedHandler wants_columns(kSums, [](Views in, Views out) {
    if (in[0].dims[1] == 0) std::abort();
    return RowSums(in, out);
  });
  EXPECT_EQ(wants_columns.Get(SumCall(4, 8)).verdict, kHolds);
  const RuleCheck check = wants_columns.Get(SumCall(4, 0));
  ASSERT_EQ(check.verdict, RuleVerdict::kHandlerFault) << RuleCheckJson(check);
  EXPECT_EQ(check.findings[0].signature, "(f32[4,0]) -> f32[4]");
  EXPECT_THAT(check.findings[0].message, HasSubstr("crashes (SIGABRT)"));
}

TEST(CheckRuleHandlers, ARuleThatDoesNotHoldOfEmptyOperandsIsFound) {
  // Rows without columns are numbered, and a shard numbers its own.
  const CheckedHandler numbers(kSums, [](Views in, Views out) {
    const std::string refusal = RowSums(in, out);
    for (int64_t i = 0; in[0].dims[1] == 0 && i < out[0].num_elements(); ++i) {
      F(out[0])[i] = static_cast<float>(i);
    }
    return refusal;
  });
  EXPECT_EQ(numbers.Get(SumCall(4, 8)).verdict, kHolds);
  const RuleCheck check = numbers.Get(SumCall(4, 0));
  ASSERT_EQ(check.verdict, kIncorrect) << RuleCheckJson(check);
  EXPECT_EQ(check.findings[0].factor, "i");
  EXPECT_EQ(check.findings[0].signature, "(f32[4,0]) -> f32[4]");
  EXPECT_EQ(check.findings[0].suggestion,
            "i j -> i reduction={j:add} need_replication={i} pad={j:0}");
}

TEST(CheckRuleHandlers, ACallWithASizeOf0IsTriedWithElementsToo) {
  // Of no rows every rule holds, and this one does not.
  const CheckedHandler wrong({.rule = "i j -> i", .blocked = {"j"}}, RowSums);
  const RuleCheck check = wrong.Get(SumCall(0, 8));
  ASSERT_EQ(check.verdict, kIncorrect) << RuleCheckJson(check);
  EXPECT_EQ(check.findings[0].factor, "j");
  const RuleCheck right = CheckedHandler(kSums, RowSums).Get(SumCall(0, 8));
  EXPECT_EQ(right.verdict, kHolds) << RuleCheckJson(right);
  EXPECT_THAT(right.untested, testing::IsEmpty());
  // A kernel that takes no rows but in that call says nothing of the rule.
  const RuleCheck never = CheckedHandler(kSums, [](Views in, Views out) {
                            return in[0].dims[0] > 0 ? "no rows" : RowSums(in, out);
                          }).Get(SumCall(0, 8));
  EXPECT_EQ(never.verdict, kHolds) << RuleCheckJson(never);
  EXPECT_THAT(never.untested,
              testing::ElementsAre(HasSubstr("i: "), HasSubstr("j: its results have no elements")));
}

TEST(CheckRuleHandlers, AnEmptyTableHasNoIndices) {
  CheckedHandler take(kTake, Take);
  take.Limit({.ranges = {{.operand = 1, .high = "s"}}});
  const absl::Status s = take.Check(absl::StrReplaceAll(kTakeCall, {{"[3,5]", "[0,5]"}})).status();
  EXPECT_THAT(std::string(s.message()),
              testing::AllOf(HasSubstr("E190"), HasSubstr("no element is in its declared range")));
}

}  // namespace
}  // namespace shardcall
