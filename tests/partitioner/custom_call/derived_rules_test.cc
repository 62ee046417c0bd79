// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/derive/derived_rules.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;

class DerivedRulesTest : public ::testing::Test {
 protected:
  const RuleAlternative& Registered(RuleText text, std::string types = "") {
    const std::string name = "t" + std::to_string(++count_);
    EXPECT_TRUE(targets_.RegisterRules(name, {{.text = std::move(text), .types = types}}).ok());
    return targets_.Find(name, "")->alternatives[0];
  }
  // The rule string and what is special in it, or the error's code.
  static std::string Line(const absl::StatusOr<RuleAlternative>& a) {
    if (!a.ok()) return std::string(DiagnosticCode(a.status()));
    std::string out = a->text.rule;
    for (const auto& [f, op] : a->text.reduction) {
      out += " " + f + ":" + std::string(PartialOpName(op));
    }
    for (const auto& f : a->text.need_replication) out += " !" + f;
    // What is derived must register.
    TargetRegistry r;
    RuleAlternative copy = *a;
    const absl::Status s = r.RegisterRules("t", {std::move(copy)});
    return s.ok() ? out : std::string(s.message());
  }
  static std::vector<std::string> Lines(const absl::StatusOr<std::vector<RuleAlternative>>& all) {
    if (!all.ok()) return {std::string(DiagnosticCode(all.status()))};
    std::vector<std::string> out;
    for (const RuleAlternative& a : *all) out.push_back(Line(a));
    return out;
  }
  TargetRegistry targets_;
  int count_ = 0;
};

const std::pair<std::string, PartialOp> kSumK{"k", PartialOp::kSum};

TEST_F(DerivedRulesTest, VmapPutsAFactorBeforeWhatIsBatched) {
  const RuleAlternative& r = Registered({.rule = "m k, k -> m", .reduction = {kSumK}});
  EXPECT_EQ(Line(BatchedRule(r, {true, true})), "batch m k, batch k -> batch m k:add");
  EXPECT_EQ(Line(BatchedRule(r, {true, false})), "batch m k, k -> batch m k:add");
  EXPECT_EQ(Line(BatchedRule(r, {false, true})), "m k, batch k -> batch m k:add");
  EXPECT_EQ(Line(BatchedRule(r, {false, false})), "E117");
  EXPECT_EQ(Line(BatchedRule(r, {true})), "E117");
  EXPECT_EQ(Line(BatchedRule(Registered({.rule = "batch -> batch"}), {true})),
            "batch0 batch -> batch0 batch");
}

TEST_F(DerivedRulesTest, VmapOfLeadingDimensionsIsTheRuleItself) {
  const RuleAlternative& r = Registered({.rule = "... d, d -> ... d", .need_replication = {"d"}});
  EXPECT_EQ(Line(BatchedRule(r, {true, false})), "... d, d -> ... d !d");
  EXPECT_EQ(Line(BatchedRule(r, {true, true})), "E117");
}

TEST_F(DerivedRulesTest, AScansDimensionIsWhole) {
  const RuleAlternative& r = Registered({.rule = "m k, k -> m", .reduction = {kSumK}});
  EXPECT_EQ(Line(ScannedRule(r, {true, false})), "step m k, k -> step m k:add !step");
}

TEST_F(DerivedRulesTest, AGradientThatLacksAFactorIsASumOverIt) {
  // y = x w: dx = dy w^T, dw = x^T dy.
  const VjpSpec vjp{
      .target = "g",
      .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0), VjpArgument::Operand(1)},
      .gradients = {0, 1}};
  EXPECT_EQ(Lines(TransposedRules(
                Registered({.rule = "m k, k n -> m n", .reduction = {kSumK}}, "T, U -> T"), vjp)),
            std::vector<std::string>{"m n, m k, k n -> m k, k n m:add n:add"});
  const auto types = TransposedRules(
      Registered({.rule = "m k, k n -> m n", .reduction = {kSumK}}, "T, U -> T"), vjp);
  EXPECT_EQ((*types)[0].types, "T, T, U -> T, U");
  // What is whole, or a largest element, stays whole.
  EXPECT_EQ(
      Lines(TransposedRules(Registered({.rule = "i j -> i", .reduction = {{"j", PartialOp::kMax}}}),
                            {.target = "g",
                             .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0)},
                             .gradients = {0}})),
      std::vector<std::string>{"i, i j -> i j !j"});
}

TEST_F(DerivedRulesTest, LeadingDimensionsAreSpelledOutWhereAGradientSumsOverThem) {
  const auto lines = Lines(
      TransposedRules(Registered({.rule = "... d, d -> ... d, ...", .need_replication = {"d"}}),
                      {.target = "g",
                       .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0),
                                     VjpArgument::Operand(1), VjpArgument::Result(1)},
                       .gradients = {0, 1}}));
  ASSERT_EQ(lines.size(), 6);
  EXPECT_EQ(lines[0], "d, d, d,  -> d, d !d");
  EXPECT_EQ(lines[2], "n0 n1 d, n0 n1 d, d, n0 n1 -> n0 n1 d, d n0:add n1:add !d");
}

TEST_F(DerivedRulesTest, CompoundsKeepTheSizesTheyNeed) {
  const auto lines = TransposedRules(
      Registered(
          {.rule = "(g r) d -> g d", .reduction = {{"r", PartialOp::kSum}}, .sizes = {{"r", 2}}}),
      {.target = "g", .arguments = {VjpArgument::Cotangent(0)}, .gradients = {0}});
  ASSERT_TRUE(lines.ok());
  EXPECT_EQ(Line((*lines)[0]), "g d -> (g r) d");
  EXPECT_EQ((*lines)[0].text.sizes.size(), 1);
}

TEST_F(DerivedRulesTest, RegisteringAVjpGivesItsTargetARule) {
  TargetRegistry t;
  const VjpSpec vjp{
      .target = "mv_bwd",
      .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0), VjpArgument::Operand(1)},
      .gradients = {0, 1}};
  EXPECT_EQ(DiagnosticCode(t.RegisterVjp("mv", vjp)), "E105");  // no rule yet
  ASSERT_TRUE(t.RegisterRule("mv", {.rule = "m k, k -> m", .reduction = {kSumK}}).ok());
  ASSERT_TRUE(t.RegisterVjp("mv", vjp).ok());
  ASSERT_NE(t.Find("mv_bwd", ""), nullptr);
  EXPECT_EQ(t.Find("mv_bwd", "")->text.rule, "m, m k, k -> m k, k");
  EXPECT_THAT(t.Find("mv_bwd", "")->source, HasSubstr("VJP of mv"));
  EXPECT_TRUE(t.RegisterVjp("mv", vjp).ok());  // an equal one
  VjpSpec another = vjp;
  another.target = "mv_bwd_2";
  const absl::Status twice = t.RegisterVjp("mv", another);
  EXPECT_EQ(DiagnosticCode(twice), "E105");
  EXPECT_THAT(std::string(twice.message()),
              testing::AllOf(HasSubstr("target \"mv_bwd\" of (cotangent 0, operand 0, operand 1)"),
                             HasSubstr("target \"mv_bwd_2\"")));
  ASSERT_TRUE(t.RegisterRule("other", {.rule = "i -> i"}).ok());
  VjpSpec bad = vjp;
  EXPECT_EQ(DiagnosticCode(t.RegisterVjp("other", bad)), "E116");
  bad.computation = "both";
  EXPECT_EQ(DiagnosticCode(t.RegisterVjp("other", bad)), "E105");
  EXPECT_EQ(DiagnosticCode(t.RegisterVjp("other", {.target = "x"})), "E116");
  ASSERT_TRUE(t.RegisterBatchPartitionable("rows", 1).ok());
  EXPECT_EQ(DiagnosticCode(t.RegisterVjp("rows", vjp)) == "", true);  // mv_bwd has a rule
}

TEST_F(DerivedRulesTest, RegisteringABatchingGivesBatchedRules) {
  TargetRegistry t;
  Context c;
  auto f32 = [&](std::vector<int64_t> dims) { return c.MakeArray(ElementType::kF32, dims); };
  ASSERT_TRUE(t.RegisterRule("mv", {.rule = "m k, k -> m", .reduction = {kSumK}}).ok());
  EXPECT_EQ(DiagnosticCode(t.RegisterBatching("none", {})), "E105");
  EXPECT_EQ(DiagnosticCode(t.RegisterBatching("mv", {.target = "x"})), "E105");
  ASSERT_TRUE(t.RegisterBatching("mv", {}).ok());
  const TargetRule* rule = t.Find("mv", "");
  const auto both = rule->Instantiate("", {f32({5, 4, 3}), f32({5, 3})}, {f32({5, 4})});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->ToString(), "batch m k, batch k -> batch m reduction={k:add}");
  const auto one = rule->Instantiate("", {f32({5, 4, 3}), f32({3})}, {f32({5, 4})});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->ToString(), "batch m k, k -> batch m reduction={k:add}");
  const auto shape =
      t.InferShape({&c, "mv", "", std::vector<const Shape*>{f32({5, 4, 3}), f32({3})}});
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ((*shape)->ToString(false), "f32[5,4]");
  // Equal registrations pass, of the rule too, which has batched forms now.
  EXPECT_TRUE(t.RegisterBatching("mv", {}).ok());
  EXPECT_TRUE(t.RegisterRule("mv", {.rule = "m k, k -> m", .reduction = {kSumK}}).ok());
  EXPECT_EQ(
      DiagnosticCode(t.RegisterRule("mv", {.rule = "m k, k -> m", .need_replication = {"k"}})),
      "E105");
  EXPECT_EQ(DiagnosticCode(t.RegisterBatching("mv", {.kind = BatchingSpec::Kind::kLoop})), "E105");
}

TEST_F(DerivedRulesTest, TargetsWithManyOperandsAreBatchedToo) {
  TargetRegistry t;
  Context c;
  for (int operands : {6, 7, 31, 32, 70}) {
    std::string rule = "a";
    for (int k = 1; k < operands; ++k) rule += ", a";
    const std::string name = "t" + std::to_string(operands);
    ASSERT_TRUE(t.RegisterRule(name, {.rule = rule + " -> a"}).ok());
    ASSERT_TRUE(t.RegisterBatching(name, {}).ok());
    const std::vector<const Shape*> shapes(operands, c.MakeArray(ElementType::kF32, {5, 4}));
    const auto batched = t.Find(name, "")->Instantiate("", shapes, {shapes[0]});
    EXPECT_TRUE(batched.ok()) << operands << ": " << batched.status();
  }
}

}  // namespace
}  // namespace shardcall
