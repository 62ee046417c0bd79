// SPDX-License-Identifier: Apache-2.0
// The rule checker: faults of every kind, each seeded in a rule whose kernel is
// right, and good rules, which pass.
#include "shardcall/partitioner/check/check_rule.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/check/rule_matchers.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/status.h"
#include "tests/support/test_targets.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;
using Views = absl::Span<const BufferView>;

// A kernel over f32 arrays, which may refuse by a message.
using Kernel = std::function<std::string(Views in, Views out)>;

float* F(const BufferView& v) { return static_cast<float*>(v.data); }

HostHandler Handler(Kernel kernel) {
  return [kernel](const HandlerContext&, Views in, Views out) -> absl::Status {
    const std::string refusal = kernel(in, out);
    return refusal.empty() ? absl::OkStatus() : absl::InvalidArgumentError(refusal);
  };
}

std::string SameShape(Views in, Views out) {
  return in[0].dims == out[0].dims ? "" : "operand and result differ in shape";
}

std::string Identity(Views in, Views out) {
  if (in[0].dims != out[0].dims) return SameShape(in, out);
  std::copy_n(F(in[0]), in[0].num_elements(), F(out[0]));
  return "";
}
std::string Transpose(Views in, Views out) {
  const int64_t r = in[0].dims[0], c = in[0].dims[1];
  if (out[0].dims[0] != c || out[0].dims[1] != r) return "the result is not transposed";
  for (int64_t i = 0; i < r; ++i) {
    for (int64_t j = 0; j < c; ++j) F(out[0])[j * r + i] = F(in[0])[i * c + j];
  }
  return "";
}
// out[i] = fold over j of in[i, j].
Kernel Reduce(float start, std::function<float(float, float)> op, bool mean = false) {
  return [=](Views in, Views out) -> std::string {
    const int64_t r = in[0].dims[0], c = in[0].dims[1];
    if (out[0].dims[0] != r) return "one result a row";
    for (int64_t i = 0; i < r; ++i) {
      float x = start;
      for (int64_t j = 0; j < c; ++j) x = op(x, F(in[0])[i * c + j]);
      F(out[0])[i] = mean ? x / static_cast<float>(c) : x;
    }
    return "";
  };
}
float Add(float a, float b) { return a + b; }
float Max(float a, float b) { return std::max(a, b); }
float Min(float a, float b) { return std::min(a, b); }
// Element (i, j) from the row in[i, :].
Kernel ByRow(std::function<float(const float* row, int64_t n, int64_t j)> f) {
  return [=](Views in, Views out) -> std::string {
    const int64_t r = in[0].dims[0], c = in[0].dims[1];
    if (in[0].dims != out[0].dims) return SameShape(in, out);
    for (int64_t i = 0; i < r; ++i) {
      for (int64_t j = 0; j < c; ++j) F(out[0])[i * c + j] = f(F(in[0]) + i * c, c, j);
    }
    return "";
  };
}
float RunningSum(const float* row, int64_t, int64_t j) {
  float x = 0;
  for (int64_t k = 0; k <= j; ++k) x += row[k];
  return x;
}
float Reverse(const float* row, int64_t n, int64_t j) { return row[n - 1 - j]; }
float Shift(const float* row, int64_t, int64_t j) { return j == 0 ? 0 : row[j - 1]; }
float Rank(const float* row, int64_t n, int64_t j) {
  return static_cast<float>(std::count_if(row, row + n, [&](float x) { return x < row[j]; }));
}
float OverSize(const float* row, int64_t n, int64_t j) { return row[j] / static_cast<float>(n); }
float SoftMax(const float* row, int64_t n, int64_t j) {
  float sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += std::exp(row[k]);
  return std::exp(row[j]) / sum;
}
// in0[i, j] + in1, along columns or rows.
Kernel AddVector(bool columns) {
  return [=](Views in, Views out) -> std::string {
    const int64_t r = in[0].dims[0], c = in[0].dims[1];
    if (in[1].dims[0] != (columns ? c : r)) return "the vector does not fit";
    if (in[0].dims != out[0].dims) return SameShape(in, out);
    for (int64_t k = 0; k < r * c; ++k) {
      F(out[0])[k] = F(in[0])[k] + F(in[1])[columns ? k % c : k / c];
    }
    return "";
  };
}
std::string MatMul(Views in, Views out) {
  const int64_t m = in[0].dims[0], k = in[0].dims[1], n = in[1].dims[1];
  if (in[1].dims[0] != k || out[0].dims[0] != m || out[0].dims[1] != n) return "not a product";
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float x = 0;
      for (int64_t l = 0; l < k; ++l) x += F(in[0])[i * k + l] * F(in[1])[l * n + j];
      F(out[0])[i * n + j] = x;
    }
  }
  return "";
}
std::string LargestOfAll(Views in, Views out) {
  F(out[0])[0] = -std::numeric_limits<float>::infinity();
  for (int64_t k = 0; k < in[0].num_elements(); ++k) {
    F(out[0])[0] = std::max(F(out[0])[0], F(in[0])[k]);
  }
  return "";
}
// in0[i, j] + in1[j, i], squares.
std::string AddTransposed(Views in, Views out) {
  const int64_t n = in[0].dims[0];
  if (in[0].dims != in[1].dims || in[0].dims[1] != n) return "squares only";
  if (in[0].dims != out[0].dims) return SameShape(in, out);
  for (int64_t k = 0; k < n * n; ++k) F(out[0])[k] = F(in[0])[k] + F(in[1])[k % n * n + k / n];
  return "";
}
// [i, j] -> [i * j], rows behind one another.
std::string Flatten(Views in, Views out) {
  if (in[0].num_elements() != out[0].num_elements()) return "not all elements";
  std::copy_n(F(in[0]), in[0].num_elements(), F(out[0]));
  return "";
}
// Sums of groups of rows: [(g r), d] -> [g, d] with two rows a group.
std::string PairSums(Views in, Views out) {
  const int64_t g = out[0].dims[0], d = out[0].dims[1];
  if (in[0].dims[0] != 2 * g || in[0].dims[1] != d) return "two rows a group";
  for (int64_t i = 0; i < g; ++i) {
    for (int64_t j = 0; j < d; ++j) {
      F(out[0])[i * d + j] = F(in[0])[2 * i * d + j] + F(in[0])[(2 * i + 1) * d + j];
    }
  }
  return "";
}

// The vector, whatever the matrix beside it says.
std::string SecondOperand(Views in, Views out) {
  if (in[1].dims != out[0].dims || in[0].dims[0] != in[1].dims[0]) return "does not fit";
  std::copy_n(F(in[1]), in[1].num_elements(), F(out[0]));
  return "";
}
// in0 + in1.
std::string Sum(Views in, Views out) {
  if (in[0].dims != in[1].dims || in[0].dims != out[0].dims) return "shapes differ";
  for (int64_t k = 0; k < in[0].num_elements(); ++k) F(out[0])[k] = F(in[0])[k] + F(in[1])[k];
  return "";
}

struct Case {
  const char* name;
  Kernel kernel;
  RuleText rule;
  RuleVerdict verdict;
  const char* factor;      // at fault
  const char* suggestion;  // part of it
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

const RuleVerdict kHolds = RuleVerdict::kHolds;
const RuleVerdict kIncorrect = RuleVerdict::kIncorrect;
const RuleVerdict kMissing = RuleVerdict::kMissing;
const RuleVerdict kNeedless = RuleVerdict::kNeedless;
const PartialOp kSum = PartialOp::kSum;
const PartialOp kMax = PartialOp::kMax;
const PartialOp kMin = PartialOp::kMin;

std::vector<Case> Cases() {
  const float inf = std::numeric_limits<float>::infinity();
  return {
      // Good rules.
      {"identity", Identity, {.rule = "i j -> i j"}, kHolds, "", ""},
      {"transpose", Transpose, {.rule = "i j -> j i"}, kHolds, "", ""},
      {"sum",
       Reduce(0, Add),
       {.rule = "i j -> i", .reduction = {{"j", kSum}}, .pad = {{"j", 0}}},
       kHolds,
       "",
       ""},
      {"sum_of_even_shards",
       Reduce(0, Add),
       {.rule = "i j -> i", .reduction = {{"j", kSum}}},
       kHolds,
       "",
       ""},
      {"largest",
       Reduce(-inf, Max),
       {.rule = "i j -> i", .reduction = {{"j", kMax}}, .pad = {{"j", -inf}}},
       kHolds,
       "",
       ""},
      {"running_sum",
       ByRow(RunningSum),
       {.rule = "i j -> i j", .need_replication = {"j"}},
       kHolds,
       "",
       ""},
      {"soft_max",
       ByRow(SoftMax),
       {.rule = "i j -> i j", .need_replication = {"j"}},
       kHolds,
       "",
       ""},
      {"matmul",
       MatMul,
       {.rule = "i k, k j -> i j", .reduction = {{"k", kSum}}, .pad = {{"k", 0}}},
       kHolds,
       "",
       ""},
      {"pair_sums",
       PairSums,
       {.rule = "(g r) d -> g d", .need_replication = {"r"}, .sizes = {{"r", 2}}},
       kHolds,
       "",
       ""},
      {"mean",
       Reduce(0, Add, true),
       {.rule = "i j -> i", .need_replication = {"j"}},
       kHolds,
       "",
       ""},
      // Seeded faults: factors in the wrong place.
      {"identity_as_transpose",
       Identity,
       {.rule = "i j -> j i"},
       kIncorrect,
       "i",
       "need_replication={i"},
      {"transpose_as_identity",
       Transpose,
       {.rule = "i j -> i j"},
       kIncorrect,
       "i",
       "need_replication={i"},
      {"vector_on_the_wrong_dimension",
       AddVector(true),
       {.rule = "i j, i -> i j"},
       kIncorrect,
       "i",
       "need_replication={i"},
      {"matmul_with_swapped_operand",
       MatMul,
       {.rule = "i k, j k -> i j", .reduction = {{"k", kSum}}, .pad = {{"k", 0}}},
       kIncorrect,
       "k",
       ""},
      {"rows_and_columns_exchanged_in_a_product",
       MatMul,
       {.rule = "i k, k j -> j i", .reduction = {{"k", kSum}}, .pad = {{"k", 0}}},
       kIncorrect,
       "i",
       ""},
      // Need-replication forgotten.
      {"running_sum_cut",
       ByRow(RunningSum),
       {.rule = "i j -> i j"},
       kIncorrect,
       "j",
       "need_replication={j}"},
      {"reverse_cut",
       ByRow(Reverse),
       {.rule = "i j -> i j"},
       kIncorrect,
       "j",
       "need_replication={j}"},
      {"shift_cut", ByRow(Shift), {.rule = "i j -> i j"}, kIncorrect, "j", "need_replication={j}"},
      {"soft_max_cut",
       ByRow(SoftMax),
       {.rule = "i j -> i j"},
       kIncorrect,
       "j",
       "need_replication={j}"},
      {"rank_cut", ByRow(Rank), {.rule = "i j -> i j"}, kIncorrect, "j", "need_replication={j}"},
      {"division_by_the_extent_cut",
       ByRow(OverSize),
       {.rule = "i j -> i j"},
       kIncorrect,
       "j",
       "need_replication={j}"},
      {"second_operand_transposed",
       AddTransposed,
       {.rule = "i j, i j -> i j"},
       kIncorrect,
       "i",
       "need_replication={i"},
      {"flatten_by_columns", Flatten, {.rule = "i j -> (j i)", .sizes = {}}, kIncorrect, "j", ""},
      // Reductions.
      {"contraction_passed_through",
       MatMul,
       {.rule = "i k, k j -> i j", .blocked = {"k"}},
       kIncorrect,
       "k",
       "reduction={k:add}"},
      {"sum_passed_through",
       Reduce(0, Add),
       {.rule = "i j -> i", .blocked = {"j"}},
       kIncorrect,
       "j",
       "reduction={j:add}"},
      {"sum_as_max",
       Reduce(0, Add),
       {.rule = "i j -> i", .reduction = {{"j", kMax}}},
       kIncorrect,
       "j",
       "reduction={j:add}"},
      {"max_as_sum",
       Reduce(-inf, Max),
       {.rule = "i j -> i", .reduction = {{"j", kSum}}},
       kIncorrect,
       "j",
       "reduction={j:max}"},
      {"min_as_max",
       Reduce(inf, Min),
       {.rule = "i j -> i", .reduction = {{"j", kMax}}},
       kIncorrect,
       "j",
       "reduction={j:min}"},
      {"mean_as_sum",
       Reduce(0, Add, true),
       {.rule = "i j -> i", .reduction = {{"j", kSum}}},
       kIncorrect,
       "j",
       "need_replication={j}"},
      // Pad identities.
      {"sum_padded_with_one",
       Reduce(0, Add),
       {.rule = "i j -> i", .reduction = {{"j", kSum}}, .pad = {{"j", 1}}},
       kIncorrect,
       "j",
       "pad={j:0}"},
      {"max_padded_with_ten",
       Reduce(-inf, Max),
       {.rule = "i j -> i", .reduction = {{"j", kMax}}, .pad = {{"j", 10}}},
       kIncorrect,
       "j",
       "pad={j:-inf}"},
      {"largest_of_all_padded_with_zero",
       LargestOfAll,
       {.rule = "j -> ", .reduction = {{"j", kMax}}, .pad = {{"j", 0}}},
       kIncorrect,
       "j",
       "pad={j:-inf}"},
      {"min_padded_below_all",
       Reduce(inf, Min),
       {.rule = "i j -> i", .reduction = {{"j", kMin}}, .pad = {{"j", -10}}},
       kIncorrect,
       "j",
       "pad={j:inf}"},
      {"product_padded_with_one",
       MatMul,
       {.rule = "i k, k j -> i j", .reduction = {{"k", kSum}}, .pad = {{"k", 1}}},
       kIncorrect,
       "k",
       "pad={k:0}"},
      // What could be sharded and is not.
      {"rows_kept_whole",
       ByRow(SoftMax),
       {.rule = "i j -> i j", .need_replication = {"i", "j"}},
       kMissing,
       "i",
       "i j -> i j need_replication={j}"},
      {"columns_kept_whole",
       Identity,
       {.rule = "i j -> i j", .need_replication = {"j"}},
       kMissing,
       "j",
       "i j -> i j"},
      {"contraction_kept_whole",
       MatMul,
       {.rule = "i k, k j -> i j", .need_replication = {"k"}},
       kMissing,
       "k",
       "reduction={k:add} pad={k:0}"},
      {"largest_kept_whole",
       Reduce(-inf, Max),
       {.rule = "i j -> i", .need_replication = {"j"}},
       kMissing,
       "j",
       "reduction={j:max} pad={j:-inf}"},
      {"groups_kept_whole",
       PairSums,
       {.rule = "(g r) d -> g d", .need_replication = {"g", "r"}, .sizes = {{"r", 2}}},
       kMissing,
       "g",
       "need_replication={r}"},
      {"columns_permuted",
       Identity,
       {.rule = "i j -> i j", .permutation = {"j"}},
       kMissing,
       "j",
       "i j -> i j"},
      // What holds and sends more than it need.
      {"reduced_though_whole",
       SecondOperand,
       {.rule = "i j, i -> i", .reduction = {{"j", kMax}}},
       kNeedless,
       "j",
       "i j, i -> i blocked={j}"},
      {"blocked_though_it_passes",
       Identity,
       {.rule = "i j -> i j", .blocked = {"j"}},
       kNeedless,
       "j",
       "i j -> i j"},
      {"vector_apart_from_its_columns",
       AddVector(true),
       {.rule = "i j, k -> i j", .need_replication = {"j", "k"}},
       kNeedless,
       "j",
       "i j, j -> i j"},
      {"result_apart_from_its_operand",
       Identity,
       {.rule = "i j -> k j", .need_replication = {"i", "k"}},
       kNeedless,
       "i",
       "i j -> i j"},
      {"three_apart_that_are_one",
       Sum,
       {.rule = "i d, j d -> k d", .need_replication = {"i", "j", "k"}},
       kNeedless,
       "i",
       "i d, i d -> i d"},
      {"contraction_apart",
       MatMul,
       {.rule = "i k, l j -> i j", .need_replication = {"k", "l"}},
       kNeedless,
       "k",
       "i k, k j -> i j reduction={k:add}"},
  };
}

class CheckRuleCases : public testing::TestWithParam<Case> {};

RuleCheck Checked(const Case& c) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  EXPECT_TRUE(targets.RegisterRule("kernel", c.rule).ok());
  EXPECT_TRUE(handlers.Register({.target = "kernel", .host = Handler(c.kernel)}).ok());
  TrialOptions options{.targets = &targets, .handlers = &handlers};
  const auto calls = CallsOfTarget("kernel", targets, handlers);
  EXPECT_TRUE(calls.ok()) << calls.status();
  if (!calls.ok()) return {};
  const auto check = CheckRule(*calls, 0, options);
  EXPECT_TRUE(check.ok()) << check.status();
  return check.ok() ? *check : RuleCheck();
}

TEST_P(CheckRuleCases, FindsWhatIsWrongAndNothingElse) {
  const Case& c = GetParam();
  const RuleCheck check = Checked(c);
  const std::string json = RuleCheckJson(check);
  EXPECT_EQ(RuleVerdictName(check.verdict), RuleVerdictName(c.verdict)) << json;
  if (c.verdict == kHolds) {
    EXPECT_GT(check.trials, 20);
    return;
  }
  ASSERT_FALSE(check.findings.empty());
  EXPECT_EQ(check.findings[0].factor, c.factor) << json;
  EXPECT_THAT(check.findings[0].suggestion, HasSubstr(c.suggestion)) << json;
  EXPECT_FALSE(check.findings[0].message.empty());
  // The counter-example is a small one.
  if (c.verdict == kIncorrect) {
    ASSERT_FALSE(check.findings[0].shards.empty());
    EXPECT_THAT(check.findings[0].signature, HasSubstr("f32["));
  }
}
INSTANTIATE_TEST_SUITE_P(Rules, CheckRuleCases, testing::ValuesIn(Cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(RuleHolds, SaysWhatDoesNot) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  ASSERT_TRUE(targets.RegisterRule("k", {.rule = "i j -> i j"}).ok());
  ASSERT_TRUE(handlers.Register({.target = "k", .host = Handler(ByRow(RunningSum))}).ok());
  testing::StringMatchResultListener listener;
  EXPECT_FALSE(testing::ExplainMatchResult(RuleHolds(targets, handlers), "k", &listener));
  EXPECT_THAT(listener.str(), HasSubstr("incorrect"));
  EXPECT_THAT("absent", testing::Not(RuleHolds(targets, handlers)));
}

}  // namespace
}  // namespace shardcall
