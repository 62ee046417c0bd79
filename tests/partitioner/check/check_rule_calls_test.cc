// SPDX-License-Identifier: Apache-2.0
// The trial call is the program's: its layouts, what it computes in place, its attributes, its side
// effects, and its results that mean nothing.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/check/check_target.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Views = absl::Span<const BufferView>;
using Kernel =
    std::function<absl::Status(const HandlerContext& context, Views operands, Views results)>;

float* F(const BufferView& v) { return static_cast<float*>(v.data); }

class CheckedCalls : public testing::Test {
 protected:
  void Target(RuleAlternative rule, Kernel kernel, CallLimits limits = {}) {
    std::vector<RuleAlternative> rules = {std::move(rule)};
    const absl::Status status = targets_.RegisterRules("k", std::move(rules));
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(targets_.RegisterCallLimits("k", std::move(limits)).ok());
    HandlerEntry entry;
    entry.target = "k";
    entry.host = std::move(kernel);
    ASSERT_TRUE(handlers_.Register(std::move(entry)).ok());
  }
  // Of a program with these lines; "": of the registration alone.
  absl::StatusOr<RuleCheck> Check(const std::string& lines) const {
    TargetCheck check = {.target = "k"};
    if (lines.empty()) return CheckTarget(check, targets_, handlers_);
    SHARDCALL_ASSIGN_OR_RETURN(const Module module,
                               ParseModule(std::make_shared<const std::string>(
                                               "HloModule m\n\nENTRY e {\n" + lines + "}\n"),
                                           std::make_shared<Context>(), "test.hlo"));
    check.program = &module;
    return CheckTarget(check, targets_, handlers_);
  }
  void ExpectHolds(const std::string& lines) const {
    const auto check = Check(lines);
    ASSERT_TRUE(check.ok()) << check.status();
    EXPECT_EQ(check->verdict, RuleVerdict::kHolds) << RuleCheckJson(*check);
    EXPECT_THAT(check->untested, IsEmpty()) << RuleCheckJson(*check);
    EXPECT_GT(check->trials, 0);
  }
  RuleVerdict VerdictOf(const std::string& lines) const {
    const auto check = Check(lines);
    EXPECT_TRUE(check.ok()) << check.status();
    return check.ok() ? check->verdict : RuleVerdict::kHolds;
  }

  TargetRegistry targets_;
  HandlerRegistry handlers_;
};

std::string Call(const std::string& result, const std::string& attributes,
                 const std::string& operand = "f32[12,8]") {
  return absl::StrCat("  x = ", operand, " parameter(0)\n  ROOT y = ", result,
                      " custom-call(x), custom_call_target=\"k\", "
                      "api_version=API_VERSION_TYPED_FFI",
                      attributes, "\n");
}

RuleAlternative RowsAlone(const std::string& rule) {
  RuleAlternative a;
  a.text = {.rule = rule, .need_replication = {"n"}};
  return a;
}

// y[i, j] = x[i, j] + the first element of the row of x, for x of rows and y of columns.
absl::Status FromRowsToColumns(const HandlerContext&, Views in, Views out) {
  const int64_t m = in[0].dims[0], n = in[0].dims[1];
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      F(out[0])[j * m + i] = F(in[0])[i * n + j] + F(in[0])[i * n];
    }
  }
  return absl::OkStatus();
}

TEST_F(CheckedCalls, HaveTheProgramsLayouts) {
  Target(RowsAlone("m n -> m n"), FromRowsToColumns);
  ExpectHolds(Call("f32[12,8]{0,1}", ", operand_layout_constraints={f32[12,8]{1,0}}"));
  // Called with rows on both sides, the same kernel mixes them up.
  EXPECT_EQ(VerdictOf(Call("f32[12,8]{1,0}", ", operand_layout_constraints={f32[12,8]{1,0}}")),
            RuleVerdict::kIncorrect);
}

TEST_F(CheckedCalls, HaveOperandsInTheProgramsLayoutsToo) {
  Target(RowsAlone("m n -> m n"), [](const HandlerContext&, Views in, Views out) {
    const int64_t m = in[0].dims[0], n = in[0].dims[1];
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) F(out[0])[i * n + j] = F(in[0])[j * m + i] + F(in[0])[i];
    }
    return absl::OkStatus();
  });
  ExpectHolds(Call("f32[12,8]{1,0}", ", operand_layout_constraints={f32[12,8]{0,1}}"));
}

// The text of a scalar has no layout.
TEST_F(CheckedCalls, HaveScalarsAmongOperandsWithLayouts) {
  Target(RowsAlone("m n, -> m n"), [](const HandlerContext&, Views in, Views out) {
    const int64_t m = in[0].dims[0], n = in[0].dims[1];
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        F(out[0])[i * n + j] = F(in[0])[i * n + j] * F(in[1])[0] + F(in[0])[i * n];
      }
    }
    return absl::OkStatus();
  });
  ExpectHolds(R"(  x = f32[12,8]{1,0} parameter(0)
  s = f32[] parameter(1)
  ROOT c = f32[12,8]{1,0} custom-call(x, s), custom_call_target="k", operand_layout_constraints={f32[12,8]{1,0}, f32[]}
)");
}

// Rows meet within tiles of 64 of them, so that less than 65 rows show nothing.
TEST_F(CheckedCalls, AreAlsoMadeInTheProgramsSizes) {
  Target(RowsAlone("m n -> m n"), [](const HandlerContext&, Views in, Views out) {
    const int64_t m = in[0].dims[0], n = in[0].dims[1];
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        F(out[0])[i * n + j] = F(in[0])[i * n + j] + F(in[0])[i * n];
        if (i >= 64) F(out[0])[i * n + j] += F(in[0])[(i - 64) * n + j];
      }
    }
    return absl::OkStatus();
  });
  EXPECT_EQ(VerdictOf(Call("f32[128,4]{1,0}", "", "f32[128,4]")), RuleVerdict::kIncorrect);
  ExpectHolds(Call("f32[64,4]{1,0}", "", "f32[64,4]"));
}

TEST_F(CheckedCalls, OfATargetWithoutAKernelAreNotChecked) {
  std::vector<RuleAlternative> rules = {RowsAlone("m n -> m n")};
  ASSERT_TRUE(targets_.RegisterRules("k", std::move(rules)).ok());
  EXPECT_EQ(DiagnosticCode(Check(Call("f32[12,8]{1,0}", "")).status()), "E140");
  EXPECT_EQ(DiagnosticCode(Check("").status()), "E140");
}

// x += 1 in place: it writes nothing but its operand.
absl::Status AddOne(const HandlerContext&, Views in, Views out) {
  if (out[0].data != in[0].data && out[0].num_elements() > 0) {
    return absl::InvalidArgumentError("the result must be the operand's buffer");
  }
  for (int64_t k = 0; k < in[0].num_elements(); ++k) F(in[0])[k] += 1;
  return absl::OkStatus();
}

TEST_F(CheckedCalls, AreInPlaceWhereTheProgramsAre) {
  RuleAlternative rule;
  rule.text.rule = "m n -> m n";
  Target(rule, AddOne);
  ExpectHolds(Call("f32[12,8]", ", output_to_operand_aliasing={{}: (0, {})}"));
  // Nothing says so in a call without it, which the kernel refuses.
  const absl::Status refused = Check(Call("f32[12,8]", "")).status();
  EXPECT_EQ(DiagnosticCode(refused), "E190");
  // There is a program already, whose call is to be mended.
  EXPECT_THAT(std::string(refused.message()),
              testing::AllOf(HasSubstr("Fix: Give the program's call the attributes, layouts and "
                                       "aliases that the handler asks for"),
                             Not(HasSubstr("Give a program with a call"))));
  EXPECT_THAT(std::string(Check("").status().message()), HasSubstr("Give a program with a call"));
}

// Too large for a trial: only smaller calls are tried, which the handler does not take.
TEST_F(CheckedCalls, AreNotToBlameWhereTheyAreTooLargeToBeTried) {
  RuleAlternative rule;
  rule.text.rule = "m n -> m n";
  Target(rule, [](const HandlerContext&, Views in, Views) {
    return in[0].dims[0] == 65536 ? absl::OkStatus()
                                  : absl::InvalidArgumentError("65536 rows alone");
  });
  EXPECT_THAT(std::string(Check(Call("f32[65536,8191]", "", "f32[65536,8191]")).status().message()),
              HasSubstr("Fix: Give a program whose call has smaller arrays"));
}

TEST_F(CheckedCalls, UpdateOneOfSeveralResultsInPlace) {
  RuleAlternative rule;
  rule.text.rule = "m n -> m n, m n";
  Target(rule, [](const HandlerContext&, Views in, Views out) {
    for (int64_t k = 0; k < in[0].num_elements(); ++k) {
      F(out[0])[k] = 2 * F(in[0])[k];
      F(in[0])[k] -= 1;  // result 1
    }
    return absl::OkStatus();
  });
  ExpectHolds(Call("(f32[12,8], f32[12,8])", ", output_to_operand_aliasing={{1}: (0, {})}"));
}

TEST_F(CheckedCalls, HaveTheProgramsSideEffectsAndAttributes) {
  RuleAlternative rule;
  rule.text.rule = "m n -> m n";
  Target(rule, [](const HandlerContext& context, Views in, Views out) -> absl::Status {
    const auto times = context.attribute_map().GetFloat("times", 0);
    if (!times.ok() || *times != 3) return absl::InvalidArgumentError("times is 3");
    for (int64_t k = 0; k < in[0].num_elements(); ++k) F(out[0])[k] = 3 * F(in[0])[k];
    return absl::OkStatus();
  });
  ExpectHolds(
      Call("f32[12,8]", ", custom_call_has_side_effect=true, backend_config={times = 3.0 : f32}"));
}

// y = 2 x, and a second result that holds what is left there: the number of the call.
absl::Status WithScratch(const HandlerContext&, Views in, Views out) {
  static std::atomic<int> number = 0;
  const float calls = static_cast<float>(++number);
  for (int64_t k = 0; k < in[0].num_elements(); ++k) F(out[1])[k] = 2 * F(in[0])[k];
  for (int64_t k = 0; k < out[0].num_elements(); ++k) {
    if (k % 3 != 0) F(out[0])[k] = calls;  // some of it is never written
  }
  return absl::OkStatus();
}

TEST_F(CheckedCalls, DoNotCompareScratch) {
  RuleAlternative rule;
  rule.text.rule = "m n -> m n, m n";
  Target(rule, WithScratch, {.scratch = {0}});
  ExpectHolds("");
  ExpectHolds(Call("(f32[12,8], f32[12,8])", ""));
}

TEST_F(CheckedCalls, CompareWhatIsNotSaidToBeScratch) {
  RuleAlternative rule;
  rule.text.rule = "m n -> m n, m n";
  Target(rule, WithScratch);
  EXPECT_NE(VerdictOf(""), RuleVerdict::kHolds);
}

// The sizes of a signature bind the calls that have it, and no others.
TEST_F(CheckedCalls, NeedNotHaveTheFactorsAndResultsOfOtherSignatures) {
  std::vector<RuleAlternative> rules(2);
  rules[0].text.rule = "m n -> m n";
  rules[1].text.rule = "m n, g -> m n, g";
  ASSERT_TRUE(targets_.RegisterRules("k", rules).ok());
  ASSERT_TRUE(targets_
                  .RegisterCallLimits("k", {.sizes = {{"g", "4 n"}},
                                            .ranges = {{.operand = 1, .high = "n"}},
                                            .scratch = {1}})
                  .ok());
  HandlerEntry entry;
  entry.target = "k";
  entry.host = [](const HandlerContext&, Views in, Views out) {
    std::copy_n(F(in[0]), in[0].num_elements(), F(out[0]));
    return absl::OkStatus();
  };
  ASSERT_TRUE(handlers_.Register(std::move(entry)).ok());
  ExpectHolds(Call("f32[12,8]", ""));
}

TEST_F(CheckedCalls, OfLimitsThatALaterRuleDoesNotHaveAreE105) {
  ASSERT_TRUE(targets_.RegisterCallLimits("k", {.sizes = {{"gate", "4 h"}}}).ok());
  ASSERT_TRUE(targets_.RegisterRule("k", {.rule = "m n -> m n"}).ok());
  HandlerEntry entry;
  entry.target = "k";
  entry.host = WithScratch;
  ASSERT_TRUE(handlers_.Register(std::move(entry)).ok());
  const absl::Status status = Check("").status();
  EXPECT_EQ(DiagnosticCode(status), "E105");
  EXPECT_THAT(std::string(status.message()), HasSubstr("gate = 4 h"));
}

// Queries of k groups of g heads, over k heads: the size of g follows from each call.
TEST_F(CheckedCalls, GetSuggestionsThatPinNoSizeOfTheirs) {
  RuleAlternative rule;
  rule.text = {.rule = "b (k g), b k -> b (k g)", .need_replication = {"b"}};
  Target(rule, [](const HandlerContext&, Views in, Views out) {
    const int64_t heads = in[0].dims[1], k = in[1].dims[1];
    if (k == 0 || heads % k != 0) return absl::InvalidArgumentError("no whole groups");
    for (int64_t i = 0; i < in[0].num_elements(); ++i) {
      F(out[0])[i] = F(in[0])[i] * F(in[1])[i / heads * k + i % heads / (heads / k)];
    }
    return absl::OkStatus();
  });
  for (const std::string& program :
       {std::string(),
        std::string("  q = f32[6,8] parameter(0)\n  k = f32[6,4] parameter(1)\n  ROOT y "
                    "= f32[6,8] custom-call(q, k), custom_call_target=\"k\", "
                    "api_version=API_VERSION_TYPED_FFI\n")}) {
    const auto check = Check(program);
    ASSERT_TRUE(check.ok()) << check.status();
    EXPECT_EQ(check->verdict, RuleVerdict::kMissing) << RuleCheckJson(*check);
    EXPECT_EQ(check->findings[0].suggestion, "b (k g), b k -> b (k g)");
  }
}

// y = 2 x on grid_x blocks of 4 rows; it refuses a grid that is not that of its rows.
absl::Status Blocks(const HandlerContext& context, Views in, Views out) {
  const auto grid = context.attribute_map().GetInt("grid_x", 0);
  if (!grid.ok() || (*grid - 1) * 4 >= in[0].dims[0]) {
    return absl::InvalidArgumentError("another grid than that of its rows");
  }
  const int64_t rows = std::min(4 * *grid, in[0].dims[0]);
  std::fill_n(F(out[0]), out[0].num_elements(), 0.0f);
  for (int64_t k = 0; k < rows * in[0].dims[1]; ++k) F(out[0])[k] = 2 * F(in[0])[k];
  return absl::OkStatus();
}

TEST_F(CheckedCalls, HaveTheAttributesThatFollowTheirSizes) {
  RuleAlternative rule;
  rule.text.rule = "m n -> m n";
  rule.attributes = {{"grid_x", "cdiv(m, 4)"}};
  Target(rule, Blocks);
  ExpectHolds(Call("f32[12,8]", ", backend_config={grid_x = 3 : i32, name = \"blocks\"}"));
  EXPECT_EQ(DiagnosticCode(Check("").status()), "E191");  // which attributes there are
  EXPECT_EQ(
      DiagnosticCode(Check(Call("f32[12,8]", ", backend_config={grid_x = 4 : i32}")).status()),
      "E125");
}

// Blocks of 512 rows, which no small shard has.
TEST_F(CheckedCalls, AreTriedInWholeBlocks) {
  RuleAlternative rule;
  rule.text.rule = "m n -> m n";
  rule.attributes = {{"grid_x", "m / 512"}};
  Target(rule, [](const HandlerContext& context, Views in, Views out) -> absl::Status {
    const auto grid = context.attribute_map().GetInt("grid_x", 0);
    if (!grid.ok() || 512 * *grid != in[0].dims[0]) return absl::InvalidArgumentError("its grid");
    std::copy_n(F(in[0]), in[0].num_elements(), F(out[0]));
    return absl::OkStatus();
  });
  const auto check =
      Check(Call("f32[1024,4]", ", backend_config={grid_x = 2 : i32}", "f32[1024,4]"));
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->verdict, RuleVerdict::kHolds) << RuleCheckJson(*check);
  EXPECT_THAT(check->untested, testing::ElementsAre(HasSubstr("m, uneven sizes: ")));
}

TEST_F(CheckedCalls, FindAttributesThatFollowWrongly) {
  RuleAlternative rule;
  rule.text.rule = "m n -> m n";
  rule.attributes = {{"grid_x", "(m + 12) / 8"}};  // right for 12 rows
  Target(rule, Blocks);
  EXPECT_EQ(VerdictOf(Call("f32[12,8]", ", backend_config={grid_x = 3 : i32}")),
            RuleVerdict::kIncorrect);
}

}  // namespace
}  // namespace shardcall
