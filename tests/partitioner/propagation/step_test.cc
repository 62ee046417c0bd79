// SPDX-License-Identifier: Apache-2.0
// One step of one rule: what it proposes, and at which stage.
#include "shardcall/partitioner/propagation/step.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "shardcall/sharding/context.h"

namespace shardcall {
namespace {

class StepTest : public ::testing::Test {
 protected:
  StepTest() : mesh_(InternBaseMesh(context_, {4, 2, 3}, DeviceOrder::Identity(24))) {
    mesh_->SetNames(
        "m",
        {{"a", {mesh_->FullAxis(0)}}, {"b", {mesh_->FullAxis(1)}}, {"c", {mesh_->FullAxis(2)}}});
  }
  AxisRef A() { return mesh_->FullAxis(0); }
  AxisRef B() { return mesh_->FullAxis(1); }
  AxisRef C() { return mesh_->FullAxis(2); }

  struct Tensor {
    std::vector<int64_t> shape;
    std::vector<AxisList> dims;  // axes; missing ones are empty
    Limits limits = {};
  };

  static Limits ClosedIn(int d) {
    Limits limits;
    limits.closed.Insert(d);
    return limits;
  }

  // "stage 0: t2.0 a; t2.1 b" for the first stage with proposals. Also holds the same rule
  // among so many tensors that it is looked up otherwise to the same proposals.
  std::string Run(RuleText text, std::vector<Tensor> operands, std::vector<Tensor> results,
                  Opcode opcode = Opcode::kDot) {
    const std::string found = RunAsIs(text, operands, results, opcode, 0);
    constexpr int kMore = 70;
    std::string more;
    std::vector<Tensor> many = operands;
    for (int k = 0; k < kMore; ++k) {
      absl::StrAppend(&more, operands.empty() && k == 0 ? "" : ", ", "more", k);
      many.push_back({{8}, {}});
    }
    text.rule.insert(text.rule.find("->"), more);
    EXPECT_EQ(RunAsIs(text, many, results, opcode, kMore), found) << text.rule;
    return found;
  }

  // The last `more` operands are not counted in the numbers of tensors.
  std::string RunAsIs(RuleText text, std::vector<Tensor> operands, std::vector<Tensor> results,
                      Opcode opcode, int more) {
    const int counted = static_cast<int>(operands.size()) - more;
    auto parsed = ParseRule(text);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    std::vector<const Shape*> ops, res;
    std::vector<int64_t> bytes;
    std::vector<StepTensor> tensors;
    std::vector<Tensor> all = operands;
    all.insert(all.end(), results.begin(), results.end());
    std::vector<Limits> limits(all.size());
    for (size_t t = 0; t < all.size(); ++t) {
      const Shape* s = context_.MakeArray(ElementType::kF32, all[t].shape);
      (t < operands.size() ? ops : res).push_back(s);
      bytes.push_back(s->byte_size());
      ShardingBuilder b(mesh_, s->rank());
      for (size_t d = 0; d < all[t].dims.size(); ++d) b.dims[d] = all[t].dims[d];
      limits[t] = all[t].limits;
      tensors.push_back({b.Intern(context_), &limits[t]});
    }
    auto rule = InstantiateRule(**parsed, ops, res);
    EXPECT_TRUE(rule.ok()) << rule.status();
    const StepRule step_rule(&*rule, opcode, bytes);
    EXPECT_EQ(step_rule.dense, more == 0);
    const StepResult result = PropagateThrough(step_rule, tensors, order_);
    contested_ = result.contested;
    if (result.stage == kNumStages) return "nothing";
    std::vector<std::string> lines;
    for (const Proposal& p : result.proposals) {
      lines.push_back(
          absl::StrCat("t", p.tensor < counted ? p.tensor : p.tensor - more, ".", p.dim, " ",
                       absl::StrJoin(
                           p.axes, "",
                           [&](std::string* o, AxisRef a) {
                             std::string name = mesh_->AxisName(a);
                             name.erase(std::remove(name.begin(), name.end(), '"'), name.end());
                             o->append(name);
                           })));
    }
    return absl::StrCat("stage ", result.stage, ": ", absl::StrJoin(lines, "; "));
  }

  const RuleText matmul_ = {.rule = "i k, k j -> i j", .reduction = {{"k", PartialOp::kSum}}};
  ConflictOrder order_ = ConflictOrder::kWait;
  bool contested_ = false;  // of the last run
  Context context_;
  BaseMesh* mesh_;
};

TEST_F(StepTest, NothingShardedProposesNothing) {
  EXPECT_EQ(Run(matmul_, {{{8, 8}, {}}, {{8, 8}, {}}}, {{{8, 8}, {}}}), "nothing");
}

TEST_F(StepTest, FreeDimensionsOfAMatmulReachItsResult) {
  EXPECT_EQ(Run(matmul_, {{{8, 8}, {{A()}, {}}}, {{8, 8}, {{}, {B()}}}}, {{{8, 8}, {}}}),
            "stage 2: t2.0 a; t2.1 b");
}

TEST_F(StepTest, AndBackFromTheResult) {
  EXPECT_EQ(Run(matmul_, {{{8, 8}, {}}, {{8, 8}, {}}}, {{{8, 8}, {{A()}, {B()}}}}),
            "stage 2: t0.0 a; t1.1 b");
}

TEST_F(StepTest, ContractedDimensionsPassBetweenOperandsLater) {
  EXPECT_EQ(Run(matmul_, {{{8, 8}, {{}, {A()}}}, {{8, 8}, {}}}, {{{8, 8}, {}}}), "stage 4: t1.0 a");
}

TEST_F(StepTest, TwoFactorsThatWantOneAxisWaitForTheAggressiveHalf) {
  // The larger operand wins there.
  EXPECT_EQ(Run(matmul_, {{{8, 8}, {{A()}}}, {{8, 16}, {{}, {A()}}}}, {{{8, 16}, {}}}),
            "stage 3: t2.1 a");
}

TEST_F(StepTest, AnOrderOfConflictsDecidesAtOnce) {
  const auto run = [&](ConflictOrder order) {
    order_ = order;
    return Run(matmul_, {{{8, 8}, {{A()}}}, {{8, 16}, {{}, {A()}}}}, {{{8, 16}, {}}});
  };
  EXPECT_EQ(run(ConflictOrder::kLarger), "stage 2: t2.1 a");
  EXPECT_EQ(run(ConflictOrder::kSmaller), "stage 2: t2.0 a");
  EXPECT_TRUE(contested_);
  // Which is what the axes alone say; a dimension without a rival passes on in any order.
  Run(matmul_, {{{8, 8}, {{A()}}}, {{8, 16}, {{}, {B()}}}}, {{{8, 16}, {}}});
  EXPECT_FALSE(contested_);
}

TEST_F(StepTest, RulesWithEqualSignaturesHaveTheSameSteps) {
  const auto of = [&](RuleText text, std::vector<int64_t> from, std::vector<int64_t> to,
                      Opcode opcode, std::vector<int64_t> bytes) {
    const Shape* operand = context_.MakeArray(ElementType::kF32, from);
    const Shape* result = context_.MakeArray(ElementType::kF32, to);
    const auto rule = InstantiateRule(**ParseRule(text), {operand}, {result});
    EXPECT_TRUE(rule.ok()) << rule.status();
    return SignatureOf(*rule, opcode, bytes);
  };
  const RuleText same = {.rule = "i j -> i j"}, turned = {.rule = "i j -> j i"};
  const StepSignature negate = of(same, {8, 6}, {8, 6}, Opcode::kNegate, {192, 192});
  EXPECT_EQ(negate, of(same, {4, 2}, {4, 2}, Opcode::kTanh, {16, 16}));
  EXPECT_NE(negate, of(turned, {8, 6}, {6, 8}, Opcode::kNegate, {192, 192}));
  EXPECT_NE(negate, of(same, {8, 6}, {8, 6}, Opcode::kSort, {192, 192}));
  EXPECT_NE(negate, of(same, {8, 6}, {8, 6}, Opcode::kCustomCall, {192, 192}));
  // Which tensor is larger counts.
  EXPECT_NE(negate, of(same, {8, 6}, {8, 6}, Opcode::kConvert, {192, 96}));
  // In a compound dimension the sizes count.
  const RuleText split = {.rule = "(i j) -> i j"};
  EXPECT_EQ(of(split, {48}, {8, 6}, Opcode::kReshape, {192, 192}),
            of(split, {48}, {8, 6}, Opcode::kReshape, {96, 96}));
  EXPECT_NE(of(split, {48}, {8, 6}, Opcode::kReshape, {192, 192}),
            of(split, {48}, {6, 8}, Opcode::kReshape, {192, 192}));
}

TEST_F(StepTest, AnAxisThatTheTensorHasElsewhereIsNotTakenTwice) {
  EXPECT_EQ(Run(matmul_, {{{8, 8}, {{A()}, {}}}, {{8, 8}, {{A()}, {}}}}, {{{8, 8}, {{A()}, {}}}}),
            "nothing");
}

TEST_F(StepTest, ElementwiseOpsComeFirst) {
  EXPECT_EQ(Run({.rule = "i j, i j -> i j"}, {{{8, 8}, {{A()}}}, {{8, 8}, {}}}, {{{8, 8}, {}}},
                Opcode::kAdd),
            "stage 0: t1.0 a; t2.0 a");
}

TEST_F(StepTest, TheBasicHalfTakesWhatAllAgreeOn) {
  EXPECT_EQ(Run({.rule = "i, i -> i"}, {{{24}, {{A(), B()}}}, {{24}, {{A(), C()}}}}, {{{24}, {}}},
                Opcode::kAdd),
            "stage 0: t2.0 a");
}

TEST_F(StepTest, ALongerShardingExtendsAShorterOne) {
  EXPECT_EQ(Run({.rule = "i, i -> i"}, {{{24}, {{A(), B()}}}, {{24}, {{A()}}}}, {{{24}, {}}},
                Opcode::kAdd),
            "stage 0: t1.0 ab; t2.0 ab");
}

TEST_F(StepTest, ClosedDimensionsAndReservedAxesAreRespected) {
  EXPECT_EQ(Run({.rule = "i j -> i j"}, {{{8, 8}, {{A()}, {B()}}}}, {{{8, 8}, {}, ClosedIn(0)}},
                Opcode::kCopy),
            "stage 0: t1.1 b");
  EXPECT_EQ(Run({.rule = "i j -> i j"}, {{{8, 8}, {{A()}, {B()}}}},
                {{{8, 8}, {}, {.reserved = {A()}}}}, Opcode::kCopy),
            "stage 0: t1.1 b");
  EXPECT_EQ(Run({.rule = "i -> i"}, {{{8}, {{A()}}}}, {{{8}, {}, {.fixed = true}}}, Opcode::kCopy),
            "nothing");
}

TEST_F(StepTest, CompoundDimensionsSplitAnAxis) {
  EXPECT_EQ(Run({.rule = "(i j) -> i j"}, {{{8}, {{A()}}}}, {{{2, 4}, {}}}, Opcode::kReshape),
            "stage 0: t1.0 a:(1)2; t1.1 a:(2)2");
  EXPECT_EQ(
      Run({.rule = "i j -> (i j)"}, {{{2, 4}, {{B()}, {A()}}}}, {{{8}, {}}}, Opcode::kReshape),
      "stage 0: t1.0 ba");
}

TEST_F(StepTest, AMinorFactorNeedsTheMajorOneSplitCompletely) {
  EXPECT_EQ(Run({.rule = "i j -> (i j)"}, {{{2, 4}, {{}, {A()}}}}, {{{8}, {}}}, Opcode::kReshape),
            "nothing");
}

TEST_F(StepTest, BroadcastsPassBackBeforeTheyPassForward) {
  EXPECT_EQ(Run({.rule = "j -> i j"}, {{{8}, {}}}, {{{8, 8}, {{}, {A()}}}}, Opcode::kBroadcast),
            "stage 2: t0.0 a");
  EXPECT_EQ(Run({.rule = "j -> i j"}, {{{8}, {{A()}}}}, {{{8, 8}, {}}}, Opcode::kBroadcast),
            "stage 6: t1.1 a");
}

TEST_F(StepTest, WhatAnOpNeedsWholeReachesItsResultsLast) {
  const RuleText sort = {.rule = "i j -> i j", .need_replication = {"j"}};
  EXPECT_EQ(Run(sort, {{{8, 8}, {{A()}, {B()}}}}, {{{8, 8}, {}}}, Opcode::kSort),
            "stage 2: t1.0 a");
  EXPECT_EQ(Run(sort, {{{8, 8}, {{A()}, {B()}}}}, {{{8, 8}, {{A()}, {}}}}, Opcode::kSort),
            "stage 8: t1.1 b");
}

TEST_F(StepTest, WhatTheAuthorOfACustomCallSaysIsWholeStaysWhole) {
  EXPECT_EQ(Run({.rule = "i -> i", .need_replication = {"i"}}, {{{8}, {{A()}}}}, {{{8}, {}}},
                Opcode::kCustomCall),
            "nothing");
}

// The op would gather what it is given there.
TEST_F(StepTest, WhatAnOpNeedsWholeReachesNoOperand) {
  const RuleText merge = {.rule = "i, i -> i", .need_replication = {"i"}};
  EXPECT_EQ(Run(merge, {{{8}, {}}, {{8}, {{A()}}}}, {{{8}, {{A()}}}}, Opcode::kSort), "nothing");
}

TEST_F(StepTest, WhatAnOpNeedsWholeStaysWherePropagationIsBlocked) {
  const RuleText blocked = {.rule = "i -> i", .need_replication = {"i"}, .blocked = {"i"}};
  EXPECT_EQ(Run(blocked, {{{8}, {{A()}}}}, {{{8}, {}}}, Opcode::kSort), "nothing");
}

TEST_F(StepTest, AConstantExpressionIsNoSourceForItsUsers) {
  EXPECT_EQ(Run({.rule = "i, i -> i"}, {{{8}, {{A()}}, {.cheap = true}}, {{8}, {}}}, {{{8}, {}}},
                Opcode::kAdd),
            "nothing");
}

TEST_F(StepTest, UnevenShardsPassWhereTheSizeIsTheSame) {
  EXPECT_EQ(Run({.rule = "i -> i"}, {{{3}, {{A()}}}}, {{{3}, {}}}, Opcode::kNegate),
            "stage 0: t1.0 a");
}

TEST_F(StepTest, ReductionFactorsThatAResultHasPassEarly) {
  EXPECT_EQ(Run({.rule = "b d, d -> b d, d",
                 .need_replication = {"d"},
                 .reduction = {{"b", PartialOp::kSum}}},
                {{{8, 8}, {{A()}}}, {{8}, {}}}, {{{8, 8}, {}}, {{8}, {}}}, Opcode::kCustomCall),
            "stage 2: t2.0 a");
}

TEST_F(StepTest, ClosedDimensionsStayClosedWhateverTheirNumber) {
  constexpr int kRank = 100;
  std::string rule;
  std::vector<int64_t> shape(kRank, 1);
  std::vector<AxisList> dims(kRank);
  for (int d = 0; d < kRank; ++d) absl::StrAppend(&rule, " f", d);
  rule = absl::StrCat(rule, " ->", rule);
  for (int d : {0, 63, 64, 99}) {
    std::vector<int64_t> sizes = shape;
    sizes[d] = 8;
    std::vector<AxisList> cut = dims;
    cut[d] = {A()};
    EXPECT_EQ(Run({.rule = rule}, {{sizes, cut}}, {{sizes, dims}}, Opcode::kNegate),
              absl::StrCat("stage 0: t1.", d, " a"));
    EXPECT_EQ(Run({.rule = rule}, {{sizes, cut}}, {{sizes, dims, ClosedIn(d)}}, Opcode::kNegate),
              "nothing");
  }
}

}  // namespace
}  // namespace shardcall
