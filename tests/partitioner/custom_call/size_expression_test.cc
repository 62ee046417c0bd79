// SPDX-License-Identifier: Apache-2.0
// Formulas over the sizes of factors: what they give, and what is wrong with those that give none.
#include "shardcall/partitioner/custom_call/size_expression.h"

#include <limits>
#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<int64_t> Value(const std::string& text, std::map<std::string, int64_t> sizes) {
  SHARDCALL_ASSIGN_OR_RETURN(const SizeExpression e, SizeExpression::Parse(text));
  return e.Evaluate([&](size_t k) { return sizes.at(e.factors()[k]); });
}

TEST(SizeExpression, GivesTheNumberThatArithmeticGives) {
  const std::map<std::string, int64_t> sizes = {{"m", 40}, {"n", 6}, {"head_dim", 8}};
  const std::map<std::string, int64_t> cases = {
      {"7", 7},
      {"m", 40},
      {"m / 8", 5},
      {"m/8*2", 10},
      {"m / (8 * 5)", 1},
      {"m - n - 1", 33},
      {"m - (n - 1)", 35},
      {"-n + m", 34},
      {"2 + 3 * n", 20},
      {"cdiv(m, 16)", 3},
      {"ceildiv(m, 16)", 3},
      {"ceil(m / 16)", 3},
      {"ceil(-n / 4)", -1},
      {"floor(m / 16)", 2},
      {"floor(-n / 4)", -2},
      {"floordiv(m, 16)", 2},
      {"m // 16", 2},
      {"m // 16 * 16", 32},
      {"max(m, n, 64)", 64},
      {"min(m, n)", 6},
      {"max(cdiv(m, 16) * n, 1)", 18},
      {"4 head_dim", 32},
      {"2 (m + n)", 92},
      {"m * 3 / 4", 30},
      {"m / 16 * 16", 40},  // exactly, unlike with integers
      {"((m))", 40},
  };
  for (const auto& [text, want] : cases) {
    const absl::StatusOr<int64_t> value = Value(text, sizes);
    ASSERT_TRUE(value.ok()) << text << ": " << value.status();
    EXPECT_EQ(*value, want) << text;
  }
}

TEST(SizeExpression, NamesItsFactorsOnce) {
  const auto e = SizeExpression::Parse("m * n + m / 2");
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_THAT(e->factors(), ElementsAre("m", "n"));
}

TEST(SizeExpression, TextThatIsNoFormulaIsE124AtItsColumn) {
  const std::map<std::string, std::string> cases = {
      {"", "column 1: expected a number, a factor or \"(\", found the end"},
      {"m /", "column 4: expected a number"},
      {"m n", "column 3: expected an operator, or the end, found \"n\""},
      {"(m", "column 3: expected \")\", found the end"},
      {"m)", "column 2: expected an operator"},
      {"round(m)", "column 1: expected one of the functions ceil, floor, cdiv, min and max"},
      {"cdiv(m)", "column 7: expected \",\": cdiv takes 2 values"},
      {"ceil(m, 2)", "column 7: expected \")\", found \", 2)\""},
      {"m & 3", "column 3: expected an operator"},
      {"12345678901234567890", "column 1: expected an integer of 64 bits"},
      {"3x", "column 1: expected an integer"},
      {"m * * n", "column 5: expected a number"},
  };
  for (const auto& [text, want] : cases) {
    const absl::Status status = SizeExpression::Parse(text).status();
    EXPECT_EQ(DiagnosticCode(status), "E124") << text;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(want), HasSubstr("Fix: Write a")))
        << text;
  }
  const std::string deep(100000, '(');
  EXPECT_EQ(DiagnosticCode(SizeExpression::Parse(deep + "m").status()), "E124");
  EXPECT_EQ(DiagnosticCode(SizeExpression::Parse(std::string(100000, '-') + "m").status()), "E124");
}

TEST(SizeExpression, AResultThatIsNoIntegerOf64BitsIsE125) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const auto text = [](const absl::StatusOr<int64_t>& value) {
    EXPECT_EQ(DiagnosticCode(value.status()), "E125");
    return std::string(value.status().message());
  };
  EXPECT_THAT(
      text(Value("m / 16", {{"m", 40}})),
      AllOf(HasSubstr("\"m / 16\" gives no size for m = 40: expected an integer, found 5/2"),
            HasSubstr("cdiv(m, n)")));
  EXPECT_THAT(text(Value("m / n", {{"m", 40}, {"n", 0}})), HasSubstr("found a division by zero"));
  EXPECT_THAT(text(Value("m * m", {{"m", most}})), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(text(Value("m + 1", {{"m", most}})), HasSubstr("beyond 64 bits"));
  EXPECT_EQ(*Value("m * m / m", {{"m", 1 << 20}}), 1 << 20);
}

}  // namespace
}  // namespace shardcall
