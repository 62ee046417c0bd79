// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/rule/rule.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/rule/rule_sizes.h"
#include "tests/sharding/corpus.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;

class RuleTest : public testing::Test {
 protected:
  std::vector<const Shape*> Shapes(const std::vector<std::vector<int64_t>>& dims) {
    std::vector<const Shape*> out;
    for (const auto& d : dims) out.push_back(context_.MakeArray(ElementType::kF32, d));
    return out;
  }
  absl::StatusOr<ShardingRule> Make(const RuleText& text,
                                    const std::vector<std::vector<int64_t>>& operands,
                                    const std::vector<std::vector<int64_t>>& results) {
    SHARDCALL_ASSIGN_OR_RETURN(auto rule, ParseRule(text));
    return InstantiateRule(*rule, Shapes(operands), Shapes(results));
  }
  Context context_;
};

TEST_F(RuleTest, ShapesThatAreNullAreRefused) {
  const Shape* const x = Shapes({{8}})[0];
  const auto rule = ParseRule({.rule = "a -> a"});
  ASSERT_TRUE(rule.ok());
  EXPECT_EQ(DiagnosticCode(InstantiateRule(**rule, {nullptr}, {x}).status()), "E111");
  EXPECT_EQ(DiagnosticCode(BatchRule(1, {x}, {nullptr}).status()), "E111");
  EXPECT_EQ(DiagnosticCode(
                ParseSdyRule("#sdy.op_sharding_rule<([i])->([i]) {i=8}>", {nullptr}, {x}).status()),
            "E111");
  EXPECT_TRUE(InstantiateRule(**rule, {x}, {x}).ok());
}

TEST_F(RuleTest, AMatmulHasItsFactorsSizesAndTexts) {
  auto rule = Make({.rule = "i k, k j -> i j", .reduction = {{"k", PartialOp::kSum}}},
                   {{8, 4}, {4, 2}}, {{8, 2}});
  ASSERT_TRUE(rule.ok()) << rule.status();
  ASSERT_EQ(rule->factors.size(), 3);
  EXPECT_EQ(rule->factors[1].name, "k");
  EXPECT_EQ(rule->factors[1].kind, FactorKind::kReduction);
  EXPECT_EQ(rule->factors[1].size, 4);
  EXPECT_EQ(rule->tensor(2).dims[1], FactorList({2}));
  EXPECT_TRUE(rule->custom);
  EXPECT_EQ(rule->ToString(), "i k, k j -> i j reduction={k:add}");
  EXPECT_EQ(rule->ToSdyText(),
            "#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=8, j=4, k=2} reduction={j}, "
            "custom>");
}

TEST_F(RuleTest, CompoundsSizesAndAllSpecialFactors) {
  auto rule = Make({.rule = "b s (g r) h, b t g h -> b s (g r) h",
                    .need_replication = {"s"},
                    .permutation = {"t"},
                    .blocked = {"h"},
                    .pad = {{"t", -1.5}},
                    .sizes = {{"r", 4}}},
                   {{16, 64, 32, 128}, {16, 99, 8, 128}}, {{16, 64, 32, 128}});
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->ToString(),
            "b s (g r) h, b t g h -> b s (g r) h need_replication={s} permutation={t} blocked={h} "
            "pad={t:-1.5} sizes={r:4}");
  EXPECT_EQ(rule->ToSdyText(),
            "#sdy.op_sharding_rule<([i, j, kl, m], [i, n, k, m])->([i, j, kl, m]) "
            "{i=16, j=64, k=8, l=4, m=128, n=99} need_replication={j} permutation={n} "
            "blocked_propagation={m}, custom>");
}

TEST_F(RuleTest, TheEllipsisStandsForLeadingBatchDimensions) {
  auto rule = Make({.rule = "... d, d -> ... d"}, {{2, 3, 5}, {5}}, {{2, 3, 5}});
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->ToString(), "b0 b1 d, d -> b0 b1 d");
  EXPECT_EQ(Make({.rule = "... d, d -> ... d"}, {{5}, {5}}, {{5}})->ToString(), "d, d -> d");
  // Its names keep clear of the author's, and numbered ones are apart.
  EXPECT_EQ(Make({.rule = "...1 b0, ...2 -> ...2 b0"}, {{2, 5}, {3}}, {{3, 5}})->ToString(),
            "b1 b0, b2 -> b2 b0");
}

TEST_F(RuleTest, EmptySidesAreScalars) {
  EXPECT_EQ(Make({.rule = "i -> "}, {{4}}, {{}})->ToString(), "i ->");
  EXPECT_EQ(Make({.rule = "i,,j->"}, {{4}, {}, {3}}, {{}})->ToSdyText(),
            "#sdy.op_sharding_rule<([i], [], [j])->([]) {i=4, j=3}, custom>");
  EXPECT_TRUE(Make({.rule = "-> i"}, {}, {{4}}).ok());
  EXPECT_TRUE(Make({.rule = "-> i"}, {{}}, {{4}}).ok());
}

TEST_F(RuleTest, MalformedRulesAreE110AndSayWhatIsWrong) {
  const std::pair<RuleText, const char*> cases[] = {
      {{.rule = "i j"}, "needs '->'"},
      {{.rule = "i $ -> i"}, "unknown character"},
      {{.rule = "i -> j -> k"}, "unknown character"},
      {{.rule = "1i -> j"}, "must start with a letter"},
      {{.rule = "_i -> j"}, "must start with a letter"},
      {{.rule = "i ... -> i"}, "first thing of its value"},
      {{.rule = "... ... -> i"}, "first thing of its value"},
      {{.rule = "(... i) -> i"}, "inside a compound"},
      {{.rule = ".. i -> i"}, "'...'"},
      {{.rule = "...1 -> ...2"}, "'...2' stands in no operand"},
      {{.rule = "a -> ... a"}, "'...' stands in no operand"},
      {{.rule = "... a -> ...1 a"}, "'...1' stands in no operand"},
      {{.rule = "(i j -> i j"}, "not closed"},
      {{.rule = "(i, j) -> i j"}, "not closed"},
      {{.rule = "i j) -> i j"}, "not open"},
      {{.rule = "(i (j k)) -> i"}, "do not nest"},
      {{.rule = "(i) -> i"}, "at least two factors"},
      {{.rule = "() -> i"}, "at least two factors"},
      {{.rule = "i i -> i"}, "twice in one value"},
      {{.rule = "i -> i", .sizes = {{"j", 2}}}, "does not use"},
      {{.rule = "(i j) -> i j", .sizes = {{"j", 2}}}, "whole dimension"},
      {{.rule = "(i j) -> (i j)"}, "has no size"},
      {{.rule = "(i j), (j k) -> (i k)", .sizes = {{"l", 2}}}, "does not use"},
      {{.rule = "(i j), (k l), i -> (k l)"}, "factor k stands only in compound dimensions"},
      {{.rule = "(i j) -> i", .sizes = {{"j", -1}}}, "at least 0"},
      {{.rule = "(i j) -> i", .sizes = {{"j", 2}, {"j", 2}}}, "one size"},
      {{.rule = "i -> i", .need_replication = {"j"}}, "does not use"},
      {{.rule = "rows n -> rows n", .need_replication = {"row"}}, "write rows in"},
      {{.rule = "i -> i", .need_replication = {"i", "i"}}, "twice"},
      {{.rule = "i -> i", .need_replication = {"i"}, .permutation = {"i"}}, "two sets"},
      {{.rule = "i -> ", .need_replication = {"i"}, .reduction = {{"i", PartialOp::kSum}}},
       "two sets"},
      {{.rule = "i -> i", .reduction = {{"i", PartialOp::kSum}}}, "stands in every result"},
      {{.rule = "\u00e9 b -> \u00e9 b"}, "found '\u00e9'"},
      {{.rule = "i -> i", .blocked = {"k"}}, "does not use"},
      {{.rule = "i -> i", .blocked = {"i", "i"}}, "twice"},
      {{.rule = "i -> i", .pad = {{"k", 0}}}, "does not use"},
      {{.rule = "i -> i", .pad = {{"i", 0}, {"i", 0}}}, "twice"},
  };
  for (const auto& [text, message] : cases) {
    const absl::Status s = ParseRule(text).status();
    EXPECT_EQ(DiagnosticCode(s), "E110") << text.rule << ": " << s;
    EXPECT_THAT(std::string(s.message()), HasSubstr(message)) << text.rule;
  }
  EXPECT_EQ(ParseRule({.rule = "i (j -> i"}).status().message(),
            "E110 a bracket of the rule is not closed at column 3: expected ')'. Fix: close the "
            "compound dimension with ')'\n"
            "  i (j -> i\n"
            "    ^");
}

TEST_F(RuleTest, ShapesThatDoNotFitAreE111) {
  const std::string matmul = "i k, k j -> i j";
  auto code = [&](const RuleText& text, const std::vector<std::vector<int64_t>>& operands,
                  const std::vector<std::vector<int64_t>>& results) {
    const absl::Status s = Make(text, operands, results).status();
    EXPECT_GT(s.message().size(), 30) << s;
    return std::string(DiagnosticCode(s));
  };
  EXPECT_EQ(code({.rule = matmul}, {{8, 4}}, {{8, 2}}), "E111");
  EXPECT_EQ(code({.rule = matmul}, {{8, 4}, {4, 2}}, {{8, 2}, {1}}), "E111");
  EXPECT_EQ(code({.rule = matmul}, {{8, 4}, {4}}, {{8, 2}}), "E111");
  EXPECT_EQ(code({.rule = matmul}, {{8, 4}, {5, 2}}, {{8, 2}}), "E111");
  EXPECT_EQ(code({.rule = "... i j -> i"}, {{8}}, {{8}}), "E111");
  EXPECT_EQ(code({.rule = "... i, ... i -> i"}, {{8, 2}, {2}}, {{2}}), "E111");
  EXPECT_EQ(code({.rule = "(i j) -> i", .sizes = {{"j", 3}}}, {{8}}, {{4}}), "E111");
}

TEST_F(RuleTest, BatchDimsAreIndependentAndTheRestIsReplicated) {
  auto rule = BatchRule(2, Shapes({{16, 4, 8}, {16}, {}}), Shapes({{16, 4}}));
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->ToString(), "b0 b1 d0, b0, -> b0 b1 need_replication={d0}");
  EXPECT_EQ(BatchRule(0, Shapes({{4}}), Shapes({{4}}))->ToString(),
            "d0 -> d1 need_replication={d0, d1}");
  EXPECT_EQ(DiagnosticCode(BatchRule(1, Shapes({{4}}), Shapes({{5}})).status()), "E111");
  EXPECT_EQ(DiagnosticCode(BatchRule(-1, {}, {}).status()), "E110");
}

TEST_F(RuleTest, SdyTextReadsBack) {
  const char* texts[] = {
      "#sdy.op_sharding_rule<([i, j, kl, m], [i, n, k, m])->([i, j, kl, m]) {i=16, j=40, k=8, "
      "l=4, m=128, n=40} need_replication={j, l, m, n}, custom>",
      "#sdy.op_sharding_rule<([i, j], [k])->([i]) {i=2, j=4, k=1} reduction={j} permutation={i} "
      "blocked_propagation={k}>",
      "#sdy.op_sharding_rule<([], [])->([])>",
  };
  const std::vector<std::vector<int64_t>> operands[] = {
      {{16, 40, 32, 128}, {16, 40, 8, 128}}, {{2, 4}, {1}}, {{}, {}}};
  const std::vector<std::vector<int64_t>> results[] = {{{16, 40, 32, 128}}, {{2}}, {{}}};
  for (int i = 0; i < 3; ++i) {
    auto rule = ParseSdyRule(texts[i], Shapes(operands[i]), Shapes(results[i]));
    ASSERT_TRUE(rule.ok()) << rule.status();
    EXPECT_EQ(rule->ToSdyText(), texts[i]);
  }
}

TEST_F(RuleTest, MoreThanEighteenFactorsGetNumberedLetters) {
  std::string rule_text;
  std::vector<int64_t> dims;
  for (int i = 0; i < 20; ++i) {
    rule_text += " f" + std::to_string(i);
    dims.push_back(i + 2);
  }
  auto rule = Make({.rule = rule_text + " ->" + rule_text}, {dims}, {dims});
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_THAT(rule->ToSdyText(), HasSubstr("y, z, z_1, z_2])->([i, j"));
  auto again = ParseSdyRule(rule->ToSdyText(), Shapes({dims}), Shapes({dims}));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ToSdyText(), rule->ToSdyText());
}

// Shardy's verifier refuses a reduction factor that a result has.
TEST_F(RuleTest, AFactorThatOneResultHasAndAnotherSumsOverIsNoReductionInSdyText) {
  const auto rule = Make({.rule = "b d k, b d k -> b d, d",
                          .reduction = {{"b", PartialOp::kSum}, {"k", PartialOp::kSum}}},
                         {{8, 4, 2}, {8, 4, 2}}, {{8, 4}, {4}});
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->ToSdyText(),
            "#sdy.op_sharding_rule<([i, j, k], [i, j, k])->([i, j], [j]) {i=8, j=4, k=2} "
            "reduction={k}, custom>");
}

// If an extent were found by looking at all others, this would take hours.
TEST_F(RuleTest, AllExtentsOfARuleOfManyTensorsAreFoundInLinearTime) {
  constexpr int kTensors = 4000000;
  ShardingRule rule;
  rule.factors.resize(2);
  rule.factors[0].size = 5;
  rule.factors[1].size = 8;
  for (int t = 0; t < kTensors; ++t) rule.extents.push_back({{t, 1}, t});
  int64_t wrong = 0;
  for (int t = 0; t < kTensors; ++t) wrong += rule.Extent(t, 1) != t || rule.Extent(t, 0) != 5;
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(rule.Extent(kTensors, 1), 8);
}

TEST_F(RuleTest, ASdyFactorMayHaveAnotherExtentInOneTensor) {
  auto rule = ParseSdyRule("#sdy.op_sharding_rule<([i], [i])->([i]) {i=8}>", Shapes({{3}, {5}}),
                           Shapes({{8}}));
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->Extent(0, 0), 3);
  EXPECT_EQ(rule->Extent(1, 0), 5);
  EXPECT_EQ(rule->Extent(2, 0), 8);
}

// As JAX writes the operands that cuDNN attention leaves empty.
TEST_F(RuleTest, EmptyDimensionsAreFactorsOfSizeZero) {
  const std::string text =
      "#sdy.op_sharding_rule<([i, j], [k], [l, m], [nk])->([i, j], [l]) "
      "{i=8, j=4, k=0, l=0, m=4, n=3} need_replication={j}, custom>";
  auto rule = ParseSdyRule(text, Shapes({{8, 4}, {0}, {0, 4}, {0}}), Shapes({{8, 4}, {0}}));
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->factors[2].size, 0);
  EXPECT_EQ(rule->ToSdyText(), text);
  EXPECT_TRUE(rule->extents.empty());

  auto own =
      Make({.rule = "i u, (g u) -> i u, u", .sizes = {{"g", 2}}}, {{8, 0}, {0}}, {{8, 0}, {0}});
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->ToString(), "i u, (g u) -> i u, u sizes={g:2}");
  EXPECT_EQ(own->ToSdyText(),
            "#sdy.op_sharding_rule<([i, j], [kj])->([i, j], [j]) {i=8, j=0, k=2}, custom>");
  EXPECT_TRUE(Make({.rule = "(g u) -> (g u)", .sizes = {{"g", 2}, {"u", 0}}}, {{0}}, {{0}}).ok());
  EXPECT_EQ(DiagnosticCode(Make({.rule = "i u, i -> u"}, {{8, 0}, {0}}, {{0}}).status()), "E111");
}

TEST_F(RuleTest, ACompoundGivesTheSizeThatItAloneLacks) {
  auto rule = Make({.rule = "b (k g), b k -> b (k g)"}, {{8, 12}, {8, 4}}, {{8, 12}});
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->ToString(), "b (k g), b k -> b (k g) sizes={g:3}");
  // Each call has sizes of its own.
  EXPECT_EQ(Make({.rule = "b (k g), b k -> b (k g)"}, {{8, 12}, {8, 12}}, {{8, 12}})->ToString(),
            "b (k g), b k -> b (k g) sizes={g:1}");
  // One size after another, in whatever order they stand.
  rule = Make({.rule = "(a b), (b c), c -> a", .need_replication = {"b", "c"}}, {{6}, {15}, {5}},
              {{2}});
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->factors[1].size, 3);
  // Where nothing is left, any size does.
  EXPECT_TRUE(Make({.rule = "(k g), k -> (k g)"}, {{0}, {0}}, {{0}}).ok());
  for (const int64_t size : {13, 0, 3}) {
    const auto misfit = Make({.rule = "b (k g), b k -> b (k g)"}, {{8, size}, {8, 4}}, {{8, 12}});
    EXPECT_EQ(DiagnosticCode(misfit.status()), "E111") << size;
  }
  EXPECT_EQ(DiagnosticCode(Make({.rule = "(k g), k -> (k g)"}, {{12}, {0}}, {{12}}).status()),
            "E111");
}

TEST_F(RuleTest, AsWrittenARuleStatesTheSizesAloneThatNoCallGives) {
  const auto written = [&](const RuleText& text, const std::vector<std::vector<int64_t>>& operands,
                           const std::vector<std::vector<int64_t>>& results) {
    auto rule = Make(text, operands, results);
    EXPECT_TRUE(rule.ok()) << rule.status();
    return RuleAsWritten(*rule);
  };
  EXPECT_EQ(written({.rule = "b (k g), b k -> b (k g)"}, {{8, 12}, {8, 4}}, {{8, 12}}),
            "b (k g), b k -> b (k g)");
  EXPECT_EQ(written({.rule = "(a b), (b c), c -> a", .need_replication = {"b", "c"}},
                    {{6}, {15}, {5}}, {{2}}),
            "(a b), (b c), c -> a need_replication={b, c}");
  // Nothing gives the sizes of two factors that stand in one compound alone.
  EXPECT_EQ(written({.rule = "(k g) -> (k g)", .sizes = {{"k", 4}, {"g", 3}}}, {{12}}, {{12}}),
            "(k g) -> (k g) sizes={k:4, g:3}");
}

TEST_F(RuleTest, FactorsThatOnlyOperandsHaveAreOpen) {
  auto open = [&](const RuleText& text, const std::vector<std::vector<int64_t>>& operands,
                  const std::vector<std::vector<int64_t>>& results) {
    auto rule = Make(text, operands, results);
    EXPECT_TRUE(rule.ok()) << rule.status();
    std::string names;
    const IndexSet found = OpenFactors(*rule, Shapes(results));
    for (size_t f = 0; f < rule->factors.size(); ++f) {
      if (found.Contains(static_cast<int>(f))) names += rule->factors[f].name;
    }
    return names;
  };
  EXPECT_EQ(open({.rule = "r c -> r"}, {{8, 4}}, {{8}}), "c");
  EXPECT_EQ(open({.rule = "a b c d e -> a",
                  .need_replication = {"b"},
                  .permutation = {"c"},
                  .blocked = {"d"},
                  .reduction = {{"e", PartialOp::kMax}}},
                 {{8, 4, 2, 2, 2}}, {{8}}),
            "");
  EXPECT_EQ(open({.rule = "r c -> r, c"}, {{8, 4}}, {{8}, {4}}), "");
  EXPECT_EQ(open({.rule = "r c -> "}, {{8, 4}}, {}), "");
  EXPECT_EQ(open({.rule = "r c -> "}, {{8, 4}}, {{}}), "rc");
}

TEST_F(RuleTest, BatchDimsThatNoResultHasAreWhole) {
  EXPECT_EQ(BatchRule(2, Shapes({{16, 4, 8}}), Shapes({{16}}))->ToString(),
            "b0 b1 d0 -> b0 need_replication={b1, d0}");
  EXPECT_EQ(BatchRule(1, Shapes({{16, 4}}), Shapes({{}}))->ToString(),
            "b0 d0 -> need_replication={b0, d0}");
  EXPECT_EQ(BatchRule(1, Shapes({{16, 4}}), {})->ToString(), "b0 d0 -> need_replication={d0}");
}

TEST_F(RuleTest, BadSdyRulesAreErrors) {
  const auto a = Shapes({{4}});
  for (const char* text :
       {"", "#sdy.op_sharding_rule<([i])>", "#sdy.op_sharding_rule<([a])->([i]) {i=4}>",
        "#sdy.op_sharding_rule<([i])->([i])>", "#sdy.op_sharding_rule<([i])->([i]) {i=4, j=2}>",
        "#sdy.op_sharding_rule<([i])->([i]) {i=-4}>",
        "#sdy.op_sharding_rule<([i])->([i]) {i=4, i=4}>",
        "#sdy.op_sharding_rule<([i])->([i]) {i=4} reduction={j}>",
        "#sdy.op_sharding_rule<([i])->([i]) {i=4} reduction={i} permutation={i}>",
        "#sdy.op_sharding_rule<([i])->([i]) {i=4}, nonsense>",
        "#sdy.op_sharding_rule<([i])->([i]) {i=4}> x"}) {
    EXPECT_EQ(DiagnosticCode(ParseSdyRule(text, a, a).status()), "E110") << text;
  }
  for (const char* text : {"#sdy.op_sharding_rule<([i], [i])->([i]) {i=4}>",
                           "#sdy.op_sharding_rule<([i, j])->([i]) {i=4, j=2}>",
                           "#sdy.op_sharding_rule<([ij])->([i]) {i=4, j=2}>"}) {
    EXPECT_EQ(DiagnosticCode(ParseSdyRule(text, a, a).status()), "E111") << text;
  }
}

TEST_F(RuleTest, EveryRuleOfTheCorpusReadsBack) {
  const auto texts = CorpusTexts("xla.sdy.sharding_rule=");
  EXPECT_GT(texts.size(), 1);
  for (const std::string& text : texts) {
    // Shapes from the text itself: the sizes behind the mappings.
    std::vector<std::vector<int64_t>> sides[2];
    const size_t arrow = text.find("->");
    for (size_t at = text.find('['); at != std::string::npos; at = text.find('[', at + 1)) {
      std::vector<int64_t>& dims = sides[at > arrow].emplace_back();
      int64_t size = 1;
      for (size_t i = at + 1;; ++i) {
        if (text[i] >= 'i' && text[i] <= 'z') {
          const size_t found = text.find(std::string(1, text[i]) + "=", text.find(") {"));
          size *= std::stoll(text.substr(found + 2));
        } else if (text[i] == ',' || text[i] == ']') {
          if (text[i - 1] != '[') dims.push_back(size);
          size = 1;
          if (text[i] == ']') break;
        }
      }
    }
    auto rule = ParseSdyRule(text, Shapes(sides[0]), Shapes(sides[1]));
    ASSERT_TRUE(rule.ok()) << rule.status();
    EXPECT_EQ(rule->ToSdyText(), text);
  }
}

}  // namespace
}  // namespace shardcall
