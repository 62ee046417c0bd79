// SPDX-License-Identifier: Apache-2.0
// The rules that VJPs get from the rules of their targets: what is whole in the one is whole in the
// other, whichever of several signatures a call had.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/custom_call/derive/derived_rules.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Rules = std::vector<RuleAlternative>;

// f(x, ..) has f_bwd(dy, x) -> dx.
VjpSpec OfFirst() {
  return {.target = "t_bwd",
          .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0)},
          .gradients = {0}};
}

class VjpRulesTest : public ::testing::Test {
 protected:
  const Shape* F32(std::vector<int64_t> dims) {
    return context_.MakeArray(ElementType::kF32, dims);
  }
  const Shape* Bf16(std::vector<int64_t> dims) {
    return context_.MakeArray(ElementType::kBF16, dims);
  }
  // The rule of a call of t_bwd, or the error of registering or of finding it.
  std::string Of(Rules rules, const VjpSpec& vjp, std::vector<const Shape*> operands,
                 std::vector<const Shape*> results, absl::string_view config = "") {
    targets_ = TargetRegistry();
    absl::Status status = targets_.RegisterRules("t", std::move(rules));
    if (status.ok()) status = targets_.RegisterVjp("t", vjp);
    if (!status.ok()) return std::string(status.message());
    const TargetRule* bwd = targets_.Find("t_bwd", config);
    const absl::StatusOr<ShardingRule> rule = bwd->Instantiate(config, operands, results);
    return rule.ok() ? rule->ToString() : std::string(rule.status().message());
  }
  // A call of dy, x and dx of one shape.
  std::string OfAlike(Rules rules, const Shape* shape, absl::string_view config = "") {
    return Of(std::move(rules), OfFirst(), {shape, shape}, {shape}, config);
  }
  Context context_;
  TargetRegistry targets_;
};

RuleAlternative Rule(std::string text, std::vector<std::string> whole = {},
                     std::string types = "") {
  return {.text = {.rule = std::move(text), .need_replication = std::move(whole)},
          .types = std::move(types)};
}

using Formulas = std::vector<std::pair<std::string, std::string>>;

TEST_F(VjpRulesTest, AttributesFollowTheShardOfTheVjpToo) {
  RuleAlternative rule = Rule("m n -> m n");
  rule.attributes = {{"rows", "m"}, {"tiles", "n / 16"}};
  EXPECT_EQ(OfAlike({rule}, F32({16, 32})), "m n, m n -> m n");
  EXPECT_EQ(targets_.Find("t_bwd", "")->alternatives[0].attributes, rule.attributes);
}

TEST_F(VjpRulesTest, AnAttributeOfAFactorThatTheVjpLacksStaysThatOfTheWhole) {
  // The VJP sees m alone. What follows from n is of the whole call there, so m is whole where an
  // attribute follows from both.
  RuleAlternative rule = Rule("m, n -> m n");
  VjpSpec vjp = OfFirst();
  vjp.arguments = {VjpArgument::Operand(0)};
  rule.attributes = {{"rows", "m"}, {"columns", "n"}};
  EXPECT_EQ(Of({rule}, vjp, {F32({4})}, {F32({4})}), "m -> m");
  EXPECT_EQ(targets_.Find("t_bwd", "")->alternatives[0].attributes, (Formulas{{"rows", "m"}}));
  rule.attributes = {{"rows", "m"}, {"size", "m * n"}};
  EXPECT_EQ(Of({rule}, vjp, {F32({4})}, {F32({4})}), "m -> m need_replication={m}");
}

TEST_F(VjpRulesTest, AVjpWithAConfigOfItsOwnHasOtherAttributes) {
  RuleAlternative rule = Rule("m n -> m n");
  rule.attributes = {{"rows", "m"}};
  rule.when = {{"fast", {true}}};
  rule.applies = [](absl::string_view config) { return config != "mode"; };
  rule.example_configs = {"{rows = 4, fast = true}"};
  VjpSpec vjp = OfFirst();
  vjp.backend_config = "mode";
  EXPECT_EQ(Of({rule}, vjp, {F32({4, 2}), F32({4, 2})}, {F32({4, 2})}, "mode"), "m n, m n -> m n");
  const RuleAlternative& bwd = targets_.Find("t_bwd", "")->alternatives[0];
  EXPECT_TRUE(bwd.attributes.empty());
  EXPECT_EQ(bwd.example_configs, std::vector<std::string>{"mode"});
}

TEST_F(VjpRulesTest, EachOfSeveralTypesIsTransposed) {
  const Rules rules = {Rule("i j -> i j", {}, "f32 -> f32 | f64 -> f64"),
                       Rule("i j -> i j", {"j"}, "bf16 -> bf16 | bf16 -> f32")};
  EXPECT_EQ(OfAlike(rules, F32({8, 16})), "i j, i j -> i j");
  EXPECT_EQ(OfAlike(rules, Bf16({8, 16})), "i j, i j -> i j need_replication={j}");
  EXPECT_EQ(Of(rules, OfFirst(), {F32({8, 16}), Bf16({8, 16})}, {Bf16({8, 16})}),
            "i j, i j -> i j need_replication={j}");
  EXPECT_THAT(Of(rules, OfFirst(), {Bf16({8, 16}), F32({8, 16})}, {F32({8, 16})}),
              HasSubstr("E111"));
}

TEST_F(VjpRulesTest, RulesThatTheVjpCannotTellApartAreAllObeyed) {
  // The second operand tells them apart, and the VJP does not take it.
  for (Rules rules : {Rules{Rule("i j -> i j"), Rule("i j, j -> i j", {"j"})},
                      Rules{Rule("i j, j -> i j", {"j"}), Rule("i j -> i j")},
                      Rules{Rule("i j -> i j", {"i"}), Rule("a b, b -> a b", {"b"})},
                      Rules{Rule("i j, j -> i j", {}, "T, bf16 -> T"),
                            Rule("i j, j -> i j", {"j"}, "T, f32 -> T")}}) {
    const std::string want = rules[0].text.need_replication == std::vector<std::string>{"i"}
                                 ? "i j, i j -> i j need_replication={i, j}"
                                 : "i j, i j -> i j need_replication={j}";
    EXPECT_EQ(OfAlike(rules, F32({8, 16})), want);
    EXPECT_EQ(targets_.Find("t_bwd", "")->alternatives.size(), 1u);
  }
}

TEST_F(VjpRulesTest, ANarrowerRuleObeysAWiderOneThatItsCallsMayHaveHad) {
  const Rules rules = {Rule("i j -> i j"), Rule("... j, j -> ... j", {"j"})};
  EXPECT_EQ(OfAlike(rules, F32({8, 16})), "i j, i j -> i j need_replication={j}");
  EXPECT_EQ(OfAlike(rules, F32({4, 8, 16})), "b0 b1 j, b0 b1 j -> b0 b1 j need_replication={j}");
  // Leading dimensions are no factors by name: those that `...` stands for may stay sharded.
  const Rules other = {Rule("i j -> i j", {"i"}), Rule("..., j -> ...", {"j"})};
  EXPECT_EQ(OfAlike(other, F32({8, 16})), "i j, i j -> i j need_replication={i}");
  EXPECT_EQ(OfAlike(other, F32({16})), "b0, b0 -> b0");
}

TEST_F(VjpRulesTest, FactorsThatRulesPutInDifferentPlacesAreWhole) {
  // By the first rule the second operand has the rows of the first, by the other a factor of its
  // own, and the VJP does not take the operand that tells them apart.
  VjpSpec vjp = OfFirst();
  vjp.arguments.push_back(VjpArgument::Operand(1));
  EXPECT_EQ(Of({Rule("i j, i -> i j"), Rule("i j, k, j -> i j", {"k"})}, vjp,
               {F32({8, 16}), F32({8, 16}), F32({8})}, {F32({8, 16})}),
            "i j, i j, i -> i j need_replication={i}");
  RuleAlternative halves = Rule("(p q) j, j -> (p q) j", {"q"});
  halves.text.sizes = {{"q", 2}};
  EXPECT_EQ(OfAlike({Rule("i j -> i j"), halves}, F32({8, 16})),
            "i j, i j -> i j need_replication={i}");
  RuleAlternative alike = Rule("(a b) j -> (a b) j");
  alike.text.sizes = {{"b", 2}};
  EXPECT_EQ(OfAlike({alike, halves}, F32({8, 16})),
            "(a b) j, (a b) j -> (a b) j need_replication={b} sizes={a:4, b:2}");
}

TEST_F(VjpRulesTest, APadHoldsIfItIsThatOfAllRules) {
  const auto with_pad = [&](double pad) {
    RuleAlternative one = Rule("k j, j -> j"), two = Rule("k j, j, i -> j", {"i"});
    one.text.reduction = two.text.reduction = {{"k", PartialOp::kSum}};
    one.text.pad = {{"k", 2}};
    two.text.pad = {{"k", pad}};
    VjpSpec vjp = OfFirst();
    vjp.gradients = {1};
    return Of({one, two}, vjp, {F32({16}), F32({8, 16})}, {F32({16})});
  };
  EXPECT_EQ(with_pad(2), "j, k j -> j reduction={k:add} pad={k:2}");
  EXPECT_EQ(with_pad(3), "j, k j -> j reduction={k:add}");
}

TEST_F(VjpRulesTest, AttributesThatRulesDoNotAgreeOnStayThoseOfTheWhole) {
  RuleAlternative one = Rule("i j -> i j"), two = Rule("i j, j -> i j");
  one.attributes = {{"n", "i"}};
  two.attributes = {{"n", "i"}, {"k", "j"}};
  EXPECT_EQ(OfAlike({one, two}, F32({8, 16})), "i j, i j -> i j need_replication={i, j}");
  EXPECT_TRUE(targets_.Find("t_bwd", "")->alternatives[0].attributes.empty());
  one.attributes = two.attributes;
  EXPECT_EQ(OfAlike({one, two}, F32({8, 16})), "i j, i j -> i j");
  EXPECT_EQ(targets_.Find("t_bwd", "")->alternatives[0].attributes, two.attributes);
}

TEST_F(VjpRulesTest, RulesThatTheVjpTellsApartAreThoseOfTheTarget) {
  RuleAlternative gelu = Rule("i j -> i j", {"j"});
  gelu.when = {{"mode", {"gelu"}}};
  const Rules rules = {Rule("... j -> ... j"), gelu};
  EXPECT_EQ(OfAlike(rules, F32({8, 16}), "{mode = \"gelu\"}"),
            "i j, i j -> i j need_replication={j}");
  EXPECT_EQ(OfAlike(rules, F32({8, 16})), "b0 j, b0 j -> b0 j");
  // With a backend_config of its own, the VJP does not show what the call had.
  VjpSpec fixed = OfFirst();
  fixed.backend_config = "";
  EXPECT_EQ(Of(rules, fixed, {F32({8, 16}), F32({8, 16})}, {F32({8, 16})}),
            "i j, i j -> i j need_replication={j}");
}

TEST_F(VjpRulesTest, RulesWhoseLeadingDimensionsDoNotCorrespondAreRefused) {
  const Rules rules = {Rule("... j -> ... j", {}, "f32 -> f32 | bf16 -> bf16"),
                       Rule("i j, j -> i j", {"i"}, "f32, f32 -> f32 | f64, f64 -> f64")};
  EXPECT_THAT(OfAlike(rules, F32({8, 16})),
              AllOf(HasSubstr("E116"), HasSubstr("does not show which of two rules a call had"),
                    HasSubstr("\"... j, ... j -> ... j\""), HasSubstr("Fix: Register a rule")));
}

TEST_F(VjpRulesTest, RulesForABackendConfigHaveVjpsForIt) {
  const auto of = [&](absl::string_view config) {
    return targets_.Find("t_bwd", config)
        ->Instantiate(config, {F32({8, 16}), F32({8, 16})}, {F32({8, 16})})
        ->ToString();
  };
  const RuleText whole{.rule = "i j -> i j", .need_replication = {"j"}};
  ASSERT_TRUE(targets_.RegisterRule("t", whole, "exact").ok());
  ASSERT_TRUE(targets_.RegisterVjp("t", OfFirst()).ok());
  EXPECT_EQ(of("exact"), "i j, i j -> i j need_replication={j}");
  EXPECT_EQ(targets_.Find("t_bwd", "fast"), nullptr);
  // One that is registered later too.
  ASSERT_TRUE(targets_.RegisterRule("t", {.rule = "i j -> i j"}).ok());
  EXPECT_EQ(of("exact"), "i j, i j -> i j need_replication={j}");
  EXPECT_EQ(of("fast"), "i j, i j -> i j");
  // A VJP that is called with one backend_config obeys all rules.
  VjpSpec fixed = OfFirst();
  fixed.backend_config = "";
  targets_ = TargetRegistry();
  ASSERT_TRUE(targets_.RegisterRule("t", whole, "exact").ok());
  ASSERT_TRUE(targets_.RegisterRule("t", {.rule = "i j -> i j"}).ok());
  ASSERT_TRUE(targets_.RegisterVjp("t", fixed).ok());
  EXPECT_EQ(of(""), "i j, i j -> i j need_replication={j}");
}

TEST_F(VjpRulesTest, TypesThatTheArgumentsDoNotGiveAreLeftOut) {
  VjpSpec vjp = OfFirst();
  vjp.arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(1)};
  EXPECT_EQ(Of({Rule("i j, j -> i j", {"j"}, "T, f32 -> f32")}, vjp, {F32({4, 2}), F32({2})},
               {Bf16({4, 2})}),
            "i j, j -> i j need_replication={j}");
  // real(T) does not say what T is.
  vjp.arguments = {VjpArgument::Cotangent(0)};
  EXPECT_EQ(Of({Rule("i -> i", {}, "T -> real(T)")}, vjp, {F32({4})},
               {context_.MakeArray(ElementType::kC64, {4})}),
            "i -> i");
  // A call without results has a scalar cotangent, of which its types say nothing.
  EXPECT_EQ(Of({Rule("i -> ", {"i"}, "f32 -> ")}, OfFirst(), {F32({}), F32({4})}, {F32({4})}),
            ", i -> i need_replication={i}");
}

TEST_F(VjpRulesTest, TypesOfOneRuleDoNotBindItsVjp) {
  // The only rule of a target is that of calls in all types, and so are those of its VJP, which are
  // several where a gradient sums over leading dimensions.
  VjpSpec vjp = OfFirst();
  vjp.arguments.push_back(VjpArgument::Operand(1));
  vjp.gradients = {0, 1};
  EXPECT_EQ(Of({Rule("... d, d -> ... d", {"d"}, "f32, f32 -> f32")}, vjp,
               {Bf16({4, 2}), Bf16({4, 2}), Bf16({2})}, {Bf16({4, 2}), Bf16({2})}),
            "n0 d, n0 d, d -> n0 d, d reduction={n0:add} need_replication={d}");
}

}  // namespace
}  // namespace shardcall
