// SPDX-License-Identifier: Apache-2.0
// The rule checker on targets whose calls may have no results. A rule that ends in "->" stands for
// a scalar and for none; types, open factors or the handler say which.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/check/check_target.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/status.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Views = absl::Span<const BufferView>;
using Kernel = std::function<absl::Status(Views operands, Views results)>;

float* F(const BufferView& v) { return static_cast<float*>(v.data); }

absl::StatusOr<RuleCheck> Check(RuleAlternative rule, Kernel kernel,
                                const std::string& program = "") {
  TargetRegistry targets;
  HandlerRegistry handlers;
  std::vector<RuleAlternative> rules = {std::move(rule)};
  SHARDCALL_RETURN_IF_ERROR(targets.RegisterRules("k", std::move(rules)));
  HandlerEntry entry;
  entry.target = "k";
  entry.host = [kernel](const HandlerContext&, Views in, Views out) { return kernel(in, out); };
  SHARDCALL_RETURN_IF_ERROR(handlers.Register(std::move(entry)));
  TargetCheck check = {.target = "k"};
  if (program.empty()) return CheckTarget(check, targets, handlers);
  SHARDCALL_ASSIGN_OR_RETURN(const Module module,
                             ParseModule(std::make_shared<const std::string>(program),
                                         std::make_shared<Context>(), "test.hlo"));
  check.program = &module;
  return CheckTarget(check, targets, handlers);
}

RuleAlternative Rule(std::string text, std::vector<std::string> whole = {},
                     std::string types = "") {
  RuleAlternative a;
  a.text = {.rule = std::move(text), .need_replication = std::move(whole)};
  a.types = std::move(types);
  return a;
}

// Looks at its operand, and at no result.
absl::Status Observe(Views, Views) { return absl::OkStatus(); }

absl::Status ObserveAlone(Views, Views out) {
  return out.empty() ? absl::OkStatus() : absl::InvalidArgumentError("expected 0 results, found 1");
}

absl::Status Sum(Views in, Views out) {
  if (out.size() != 1) return absl::InvalidArgumentError("expected 1 result");
  F(out[0])[0] = 0;
  for (int64_t k = 0; k < in[0].num_elements(); ++k) F(out[0])[0] += F(in[0])[k];
  return absl::OkStatus();
}

void ExpectRuns(const absl::StatusOr<RuleCheck>& check) {
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->verdict, RuleVerdict::kHolds) << RuleCheckJson(*check);
  EXPECT_THAT(check->findings, IsEmpty());
}

TEST(CallsWithoutResults, AreTriedWhereOpenFactorsRuleAScalarOut) {
  for (const Kernel& kernel : {Kernel(Observe), Kernel(ObserveAlone)}) {
    for (const char* rule : {"b d ->", "... d ->", "b d, d ->"}) {
      const auto check = Check(Rule(rule), kernel);
      ExpectRuns(check);
      EXPECT_TRUE(!check.ok() || check->trials > 0) << "shards are given to the handler";
    }
  }
}

TEST(CallsWithoutResults, SayThatNothingWasCompared) {
  const auto check = Check(Rule("b d ->"), Observe);
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_THAT(check->untested, ElementsAre("b: its calls have no results to compare",
                                           "d: its calls have no results to compare"));
  // So does the call of a program.
  const auto program =
      Check(Rule("b d ->"), Observe,
            "HloModule m\n\nENTRY e {\n  x = f32[12,8] parameter(0)\n  c = () custom-call(x), "
            "custom_call_target=\"k\", api_version=API_VERSION_TYPED_FFI, "
            "custom_call_has_side_effect=true\n  ROOT t = (f32[12,8]) tuple(x)\n}\n");
  ExpectRuns(program);
  ASSERT_TRUE(program.ok());
  EXPECT_GT(program->trials, 0);
  EXPECT_EQ(program->untested, check->untested);
}

TEST(CallsWithoutResults, WhoseHandlerRefusesAShardHaveAWrongRule) {
  const auto check = Check(Rule("b d ->"), [](Views in, Views) {
    return in[0].dims[1] % 2 == 0 ? absl::OkStatus() : absl::InvalidArgumentError("odd rows");
  });
  ExpectRuns(check);
  const auto whole = Check(Rule("b d ->"), [](Views in, Views) {
    return in[0].dims[1] == 6 ? absl::OkStatus() : absl::InvalidArgumentError("rows of 6");
  });
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->verdict, RuleVerdict::kIncorrect) << RuleCheckJson(*whole);
  EXPECT_THAT(whole->findings[0].message, HasSubstr("rows of 6"));
  EXPECT_EQ(whole->findings[0].suggestion, "b d -> need_replication={d}");
  EXPECT_EQ(whole->findings[0].signature, "(f32[4,6]) -> ()");
}

TEST(CallsWithoutResults, AreTriedWhereTheHandlerTakesNoScalar) {
  const RuleAlternative rule = Rule("b d ->", {"b", "d"});
  ExpectRuns(Check(rule, ObserveAlone));
  ExpectRuns(Check(rule, Observe));  // it leaves a scalar unwritten
  const auto sum = Check(rule, Sum);
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(sum->verdict, RuleVerdict::kMissing) << "b may be summed over";
  const auto neither = Check(rule, [](Views, Views out) {
    return absl::InvalidArgumentError(out.empty() ? "give one result" : "never on Sundays");
  });
  EXPECT_THAT(neither.status(),
              Fails("E190",
                    "never on Sundays at %c; of a call without results: E317 custom-call: "
                    "the handler of \"k\" failed: give one result at %c: found"));
}

TEST(CallsWithoutResults, AreWhatTheTypesSay) {
  ExpectRuns(Check(Rule("b d ->", {}, "f32 ->"), ObserveAlone));
  // A scalar that is not written is a fault where the types promise it.
  const auto scalar = Check(Rule("b d ->", {"b", "d"}, "f32 -> f32"), Observe);
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  EXPECT_EQ(scalar->verdict, RuleVerdict::kHandlerFault);
  RuleAlternative sum = Rule("b d ->", {}, "f32 -> f32");
  sum.text.reduction = {{"b", PartialOp::kSum}, {"d", PartialOp::kSum}};
  sum.text.pad = {{"b", 0}, {"d", 0}};
  ExpectRuns(Check(sum, Sum));
}

}  // namespace
}  // namespace shardcall
