// SPDX-License-Identifier: Apache-2.0
// Targets with several signatures: which one a call has, and lists that do not say.
#include "shardcall/partitioner/custom_call/rule_choice.h"

#include <limits>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/custom_call/derive/derived_rules.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;

class RuleChoiceTest : public ::testing::Test {
 protected:
  const Shape* F32(std::vector<int64_t> dims) {
    return context_.MakeArray(ElementType::kF32, dims);
  }
  const Shape* Bf16(std::vector<int64_t> dims) {
    return context_.MakeArray(ElementType::kBF16, dims);
  }
  // The rule string of a call with the rules, or the error.
  std::string Of(std::vector<RuleAlternative> rules, std::vector<const Shape*> operands,
                 std::vector<const Shape*> results, absl::string_view config = "") {
    TargetRegistry r;
    const absl::Status status = r.RegisterRules("t", std::move(rules));
    if (!status.ok()) return std::string(status.message());
    const absl::StatusOr<ShardingRule> rule =
        r.Find("t", config)->Instantiate(config, operands, results);
    return rule.ok() ? rule->ToString() : std::string(rule.status().message());
  }
  std::string Registered(std::vector<RuleAlternative> rules) {
    TargetRegistry r;
    const absl::Status status = r.RegisterRules("t", std::move(rules));
    return status.ok() ? "ok" : std::string(status.message());
  }
  Context context_;
};

RuleAlternative Rule(std::string text, std::string types = "", AttributeConditions when = {}) {
  return {.text = {.rule = std::move(text)}, .when = std::move(when), .types = std::move(types)};
}

TEST_F(RuleChoiceTest, NumbersOfOperandsAndRanksTellRulesApart) {
  const std::vector<RuleAlternative> rules = {Rule("i j -> i j"), Rule("i j, j -> i j"),
                                              Rule("b i j -> b i j")};
  EXPECT_EQ(Of(rules, {F32({4, 2})}, {F32({4, 2})}), "i j -> i j");
  EXPECT_EQ(Of(rules, {F32({4, 2}), F32({2})}, {F32({4, 2})}), "i j, j -> i j");
  EXPECT_EQ(Of(rules, {F32({3, 4, 2})}, {F32({3, 4, 2})}), "b i j -> b i j");
  EXPECT_THAT(Of(rules, {F32({3})}, {F32({3})}),
              ::testing::AllOf(HasSubstr("E111"), HasSubstr("\"i j, j -> i j\" or")));
}

TEST_F(RuleChoiceTest, TypesTellRulesApart) {
  RuleAlternative exact = Rule("i j -> i j", "f32 -> f32");
  RuleAlternative rounded = Rule("i j -> i j", "bf16 -> bf16 | bf16 -> f32");
  rounded.text.need_replication = {"j"};
  EXPECT_EQ(Of({exact, rounded}, {F32({4, 2})}, {F32({4, 2})}), "i j -> i j");
  EXPECT_EQ(Of({exact, rounded}, {Bf16({4, 2})}, {F32({4, 2})}), "i j -> i j need_replication={j}");
  EXPECT_THAT(Of({exact, rounded}, {F32({4, 2})}, {Bf16({4, 2})}),
              ::testing::AllOf(HasSubstr("E111"), HasSubstr("types \"f32 -> f32\"")));
}

TEST_F(RuleChoiceTest, AttributesTellRulesApart) {
  RuleAlternative rows = Rule("i j -> i j", "", {{"axis", {int64_t{1}}}});
  rows.text.need_replication = {"j"};
  RuleAlternative columns = Rule("i j -> i j", "", {{"axis", {int64_t{0}, std::monostate()}}});
  columns.text.need_replication = {"i"};
  const auto of = [&](absl::string_view config) {
    return Of({rows, columns}, {F32({4, 2})}, {F32({4, 2})}, config);
  };
  EXPECT_EQ(of("{axis = 1 : i64}"), "i j -> i j need_replication={j}");
  EXPECT_EQ(of("{axis = 0 : i32, eps = 1.0 : f32}"), "i j -> i j need_replication={i}");
  EXPECT_EQ(of("{eps = 1.0 : f32}"), "i j -> i j need_replication={i}");
  EXPECT_EQ(of(""), "i j -> i j need_replication={i}");
  EXPECT_THAT(of("{axis = 2 : i64}"), HasSubstr("no rule of target \"t\" is for these attributes"));
  EXPECT_THAT(of("{axis = true}"), HasSubstr("E111"));
  // As JSON, which the calls of untyped handlers have.
  EXPECT_EQ(of("{\"rows\": 4, \"axis\": 1}"), "i j -> i j need_replication={j}");
  EXPECT_EQ(of("{\"axis\": 0}"), "i j -> i j need_replication={i}");
  EXPECT_EQ(of("{\"rows\": 4}"), "i j -> i j need_replication={i}");
  EXPECT_EQ(of("{\"axis\": null}"), "i j -> i j need_replication={i}");
  EXPECT_THAT(of("{\"axis\": 2}"), HasSubstr("no rule of target \"t\" is for these attributes"));
  EXPECT_THAT(of("{\"axis\": true}"), HasSubstr("E111"));
  EXPECT_THAT(of("{\"axis\": [1]}"), HasSubstr("E111"));
  EXPECT_THAT(of("{\"custom_call_backend_config\": {\"attributes\": \"{axis = 1 : i64}\"}}"),
              "i j -> i j need_replication={j}");
}

TEST_F(RuleChoiceTest, ConditionsCompareValues) {
  const auto holds = [](AttributeCondition::Value value, absl::string_view config) {
    return Satisfies(config, AttributeConditions{{"a", {std::move(value)}}});
  };
  EXPECT_TRUE(holds("gelu", "{a = \"gelu\"}"));
  EXPECT_FALSE(holds("gelu", "{a = \"relu\"}"));
  EXPECT_FALSE(holds("gelu", "gelu"));  // not a dictionary
  EXPECT_TRUE(holds(true, "{a = true}"));
  EXPECT_FALSE(holds(int64_t{1}, "{a = true}"));
  EXPECT_TRUE(holds(0.1, "{a = 1.000000e-01 : f32}"));
  EXPECT_TRUE(holds(0.1, "{a = 1.000000e-01 : f64}"));
  EXPECT_TRUE(holds(int64_t{2}, "{a = 2.0 : f32}"));
  EXPECT_FALSE(holds(2.0, "{a = 2 : i32}"));
  EXPECT_TRUE(holds(0.1, "{\"a\": 0.1}"));
  EXPECT_TRUE(holds(int64_t{2}, "{\"a\": 2.0}"));
  EXPECT_FALSE(holds(2.0, "{\"a\": 2}"));
  EXPECT_TRUE(holds("gelu", "{\"a\": \"gelu\"}"));
  EXPECT_FALSE(holds("gelu", "\"gelu\""));
  EXPECT_FALSE(holds(int64_t{1}, "{a = dense<1> : tensor<1xi64>}"));
  EXPECT_EQ(AttributeConditionsText(*AttributeConditionsOf("{b = \"x\", a = 3 : i32}")),
            "{a = 3, b = \"x\"}");
  EXPECT_EQ(DiagnosticCode(AttributeConditionsOf("{a = dense<1> : tensor<1xi64>}").status()),
            "E110");
}

TEST_F(RuleChoiceTest, NumbersThatOneAttributeIsAreToldApartOrRefused) {
  using Value = AttributeCondition::Value;
  const auto when = [](Value value, std::vector<std::string> whole = {}) {
    RuleAlternative rule = Rule("i j -> i j", "", {{"a", {std::move(value)}}});
    rule.text.need_replication = std::move(whole);
    return rule;
  };
  // 1.0 is narrower than 1, which integers are too.
  const RuleAlternative whole = when(int64_t{1}, {"j"}), real = when(1.0);
  for (const std::vector<RuleAlternative>& rules : {std::vector{whole, real}, {real, whole}}) {
    const auto of = [&](absl::string_view config) {
      return Of(rules, {F32({4, 2})}, {F32({4, 2})}, config);
    };
    EXPECT_EQ(of("{a = 1.0 : f32}"), "i j -> i j");
    EXPECT_EQ(of("{a = 1.0 : f64}"), "i j -> i j");
    EXPECT_EQ(of("{a = 1 : i32}"), "i j -> i j need_replication={j}");
  }
  // 0.1 : f32 is both 0.1 and the double that is nearest to it.
  const double narrow = static_cast<double>(0.1f);
  for (const auto& [v, w] : {std::pair<Value, Value>{0.1, narrow},
                             {int64_t{16777216}, 16777217.0},
                             {0.0, -0.0},
                             {int64_t{0}, int64_t{0}}}) {
    EXPECT_THAT(Registered({when(v), when(w)}), HasSubstr("E105")) << v.index();
    EXPECT_THAT(Registered({when(w), when(v)}), HasSubstr("E105")) << v.index();
  }
  // An attribute is one of two integers at most, whatever its type.
  for (const auto& [v, w] : {std::pair<Value, Value>{int64_t{16777216}, int64_t{16777217}},
                             {int64_t{9007199254740992}, int64_t{9007199254740993}},
                             {true, int64_t{1}},
                             {1.5, int64_t{1}},
                             {0.1, 0.2}}) {
    EXPECT_EQ(Registered({when(v), when(w)}), "ok");
  }
  EXPECT_THAT(Registered({when(0.1), when(narrow)}),
              HasSubstr("{a = 0.1} and \"i j -> i j\" when {a = 0.10000000149011612}"));
}

TEST_F(RuleChoiceTest, IntegersWithoutASignAreNotNegative) {
  constexpr char kMost[] = "{a = 18446744073709551615 : ui64}";
  EXPECT_FALSE(Satisfies(kMost, AttributeConditions{{"a", {int64_t{-1}}}}));
  EXPECT_TRUE(Satisfies("{a = 9223372036854775807 : ui64}",
                        AttributeConditions{{"a", {std::numeric_limits<int64_t>::max()}}}));
  EXPECT_FALSE(Satisfies("{a = 9.223372036854775808e18 : f64}",
                         AttributeConditions{{"a", {std::numeric_limits<int64_t>::max()}}}));
  EXPECT_EQ(DiagnosticCode(AttributeConditionsOf(kMost).status()), "E110");
}

TEST_F(RuleChoiceTest, TypesOfTheOnlyRuleDoNotBindWithABatchingEither) {
  TargetRegistry r;
  ASSERT_TRUE(r.RegisterRules("t", {Rule("i j -> i j", "f32 -> f32")}).ok());
  const auto of = [&](std::vector<int64_t> dims) {
    const auto rule = r.Find("t", "")->Instantiate("", {Bf16(dims)}, {Bf16(dims)});
    return rule.ok() ? rule->ToString() : std::string(rule.status().message());
  };
  EXPECT_EQ(of({4, 2}), "i j -> i j");
  ASSERT_TRUE(r.RegisterBatching("t", {.kind = BatchingSpec::Kind::kLeading}).ok());
  EXPECT_EQ(of({4, 2}), "i j -> i j");
  EXPECT_EQ(of({3, 4, 2}), "batch i j -> batch i j");
}

TEST_F(RuleChoiceTest, TheNarrowestRuleIsTakenInWhateverOrderTheyStand) {
  RuleAlternative wide = Rule("... j -> ... j"), two = Rule("i j -> i j");
  RuleAlternative typed = Rule("i j -> i j", "bf16 -> bf16");
  wide.text.need_replication = {"j"};
  two.text.need_replication = {"i"};
  for (const auto& rules :
       {std::vector{wide, two, typed}, {typed, wide, two}, {two, typed, wide}}) {
    EXPECT_EQ(Of(rules, {F32({4, 2})}, {F32({4, 2})}), "i j -> i j need_replication={i}");
    EXPECT_EQ(Of(rules, {Bf16({4, 2})}, {Bf16({4, 2})}), "i j -> i j");
    EXPECT_EQ(Of(rules, {F32({2})}, {F32({2})}), "j -> j need_replication={j}");
  }
}

TEST_F(RuleChoiceTest, RulesThatFitACallEquallyAreRefused) {
  const AttributeCondition gelu{"mode", {"gelu"}}, relu{"mode", {"relu"}},
      any{"mode", {"gelu", "relu"}}, fast{"fast", {true}};
  using Pair = std::pair<RuleAlternative, RuleAlternative>;
  constexpr char kSame[] = "are for the same calls", kSome[] = "fit some calls equally well";
  const std::vector<std::pair<Pair, const char*>> refused = {
      {{Rule("i j -> i j"), Rule("a b -> b a")}, kSame},
      {{Rule("... i -> ... i"), Rule("... j -> ... j")}, kSame},
      {{Rule("... d, d -> ... d"), Rule("... d, ... d -> ... d")}, kSome},
      {{Rule("i j -> i j", "f32 -> f32"), Rule("i j -> i j", "", {gelu})}, kSome},
      {{Rule("i j -> i j", "", {gelu}), Rule("i j -> i j", "", {fast})}, kSome},
      {{Rule("i j -> i j", "", {gelu}), Rule("i j -> i j", "", {gelu})}, kSame},
      {{Rule("i j, i j -> i j", "T, f32 -> T"), Rule("i j, i j -> i j", "f32, T -> f32")}, kSome},
      {{Rule("i j -> i j", "T -> real(T)"), Rule("i j -> i j", "T -> f32")}, kSome},
      {{Rule("i, i, i -> i", "A, B, C -> C"), Rule("j, j, j -> j", "T, U, V -> V")}, kSame},
  };
  for (const auto& [pair, what] : refused) {
    const auto& [a, b] = pair;
    for (const std::string& text : {Registered({a, b}), Registered({b, a})}) {
      EXPECT_THAT(text, HasSubstr("E105"));
      EXPECT_THAT(text, HasSubstr(what));
      EXPECT_THAT(text, HasSubstr(a.text.rule));
      EXPECT_THAT(text, HasSubstr(b.text.rule));
      EXPECT_THAT(text, HasSubstr("Fix: Leave one of them out, or tell them apart by `types`"));
    }
  }
  const std::vector<Pair> narrower = {
      {Rule("i j -> i j", "f32 -> f32"), Rule("... j -> ... j")},
      {Rule("a b, ... c -> a b, ... c"), Rule("...1 i, ...2 j -> ...1 i, ...2 j")},
      {Rule("i j, j, j -> i j", "T, S, U -> T"), Rule("... j, j, j -> ... j", "T, S, U -> T")},
  };
  for (const auto& [a, b] : narrower) {
    EXPECT_EQ(Registered({a, b}), "ok");
    EXPECT_EQ(Registered({b, a}), "ok");
  }
  const std::vector<std::pair<RuleAlternative, RuleAlternative>> apart = {
      {Rule("i j -> i j"), Rule("i j -> i j, i")},
      {Rule("i j -> i j"), Rule("... i j k -> ... i j k")},
      {Rule("... i, ... i -> ... i"), Rule("i j, j -> i j")},
      {Rule("i j -> i j", "", {gelu}), Rule("i j -> i j", "", {relu})},
      {Rule("i j -> i j", "", {gelu}), Rule("i j -> i j", "", {any})},
      {Rule("i j -> i j", "f32 -> f32"), Rule("i j -> i j", "f32 -> bf16")},
      {Rule("i j, i j -> i j", "T, T -> T"), Rule("i j, i j -> i j", "f32, bf16 -> f32")},
      {Rule("i j -> i j", "c64 -> c64"), Rule("i j -> i j", "T -> real(T)", {gelu})},
      {Rule("i j -> i j", "c64 -> f32"), Rule("i j -> i j", "T -> T")},
  };
  for (const auto& [a, b] : apart) {
    EXPECT_EQ(Registered({a, b}), "ok");
    EXPECT_EQ(Registered({b, a}), "ok");
  }
}

TEST_F(RuleChoiceTest, ABatchIsOneCallIfTheSameRuleFitsIt) {
  TargetRegistry r;
  RuleAlternative whole = Rule("i j k, j -> i j k");
  whole.text.need_replication = {"k"};
  ASSERT_TRUE(
      r.RegisterRules("t", {Rule("... j -> ... j"), Rule("... j, j -> ... j"), whole}).ok());
  const TargetRule& rule = *r.Find("t", "");
  EXPECT_TRUE(TakesBatch(rule, "", {F32({4, 2})}, {F32({4, 2})}, {true}));
  EXPECT_TRUE(TakesBatch(rule, "", {F32({2}), F32({2})}, {F32({2})}, {true, false}));
  // With one more dimension the call would have the third rule.
  EXPECT_FALSE(TakesBatch(rule, "", {F32({2, 2}), F32({2})}, {F32({2, 2})}, {true, false}));
  EXPECT_FALSE(TakesBatch(rule, "", {F32({4, 2}), F32({2})}, {F32({4, 2})}, {true, true}));
  EXPECT_FALSE(TakesBatch(rule, "", {}, {F32({4})}, {}));
}

TEST_F(RuleChoiceTest, GradientsHaveARuleForEachSignature) {
  TargetRegistry r;
  ASSERT_TRUE(
      r.RegisterRules("t", {Rule("i j -> i j", "", {{"mode", {"a"}}}), Rule("i j, j -> i j")})
          .ok());
  ASSERT_TRUE(r.RegisterVjp("t", {.target = "t_bwd",
                                  .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0)},
                                  .gradients = {0}})
                  .ok());
  const TargetRule* bwd = r.Find("t_bwd", "");
  ASSERT_NE(bwd, nullptr);
  EXPECT_EQ(
      bwd->Instantiate("{mode = \"a\"}", {F32({4, 2}), F32({4, 2})}, {F32({4, 2})})->ToString(),
      "i j, i j -> i j");
  ASSERT_TRUE(r.RegisterBatching("t", {.kind = BatchingSpec::Kind::kLeading}).ok());
  EXPECT_EQ(
      r.Find("t", "")->Instantiate("", {F32({3, 4, 2}), F32({3, 2})}, {F32({3, 4, 2})})->ToString(),
      "batch i j, batch j -> batch i j");
}

TEST_F(RuleChoiceTest, AListThatFitsNoAttributesSaysSo) {
  EXPECT_THAT(Of({Rule("i -> i", "", {{"mode", {"a"}}})}, {F32({4})}, {F32({4})}, "{mode = \"b\"}"),
              HasSubstr("no rule of target \"t\" is for these attributes"));
}

}  // namespace
}  // namespace shardcall
