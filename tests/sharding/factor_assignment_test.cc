// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/rule/factor_assignment.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "shardcall/sharding/context.h"

namespace shardcall {
namespace {

class FactorAssignmentTest : public testing::Test {
 protected:
  FactorAssignmentTest() : mesh_(InternBaseMesh(context_, {4, 2}, DeviceOrder::Identity(8))) {
    mesh_->SetNames("m", {{"a", {mesh_->FullAxis(0)}}, {"b", {mesh_->FullAxis(1)}}});
  }
  AxisRef A() { return mesh_->FullAxis(0); }
  AxisRef B() { return mesh_->FullAxis(1); }

  std::vector<const Shape*> Shapes(const std::vector<std::vector<int64_t>>& dims) {
    std::vector<const Shape*> out;
    for (const auto& d : dims) out.push_back(context_.MakeArray(ElementType::kF32, d));
    return out;
  }
  ShardingRule Rule(const RuleText& text, const std::vector<std::vector<int64_t>>& operands,
                    const std::vector<std::vector<int64_t>>& results) {
    const auto parsed = ParseRule(text);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    auto rule = InstantiateRule(**parsed, Shapes(operands), Shapes(results));
    EXPECT_TRUE(rule.ok()) << rule.status();
    return *std::move(rule);
  }
  const Sharding* Sharded(const std::vector<AxisList>& dims) {
    ShardingBuilder b(mesh_, static_cast<int>(dims.size()));
    for (size_t d = 0; d < dims.size(); ++d) b.dims[d] = dims[d];
    return b.Intern(context_);
  }
  IndexSet Shardable(const ShardingRule& rule) {
    IndexSet allowed;
    for (size_t f = 0; f < rule.factors.size(); ++f) {
      if (rule.factors[f].kind != FactorKind::kNeedReplication) {
        allowed.Insert(static_cast<int>(f));
      }
    }
    return allowed;
  }

  Context context_;
  BaseMesh* mesh_;
};

TEST_F(FactorAssignmentTest, AMatmulTakesOverItsOperandsAndIsPartial) {
  const ShardingRule rule = Rule({.rule = "i k, k j -> i j", .reduction = {{"k", PartialOp::kSum}}},
                                 {{8, 4}, {4, 2}}, {{8, 2}});
  FactorAssignment f(rule, mesh_, {}, Shardable(rule));
  f.Project(0, *Sharded({{A()}, {B()}}));
  EXPECT_EQ(f.TensorSharding(context_, 1)->ToString(), "[{\"b\"}, {}]");
  EXPECT_EQ(f.TensorSharding(context_, 2)->ToString(), "[{\"a\"}, {}] partial=add{\"b\"}");
  EXPECT_EQ(f.DimSharding(context_, 2)->ToString(), "[{\"a\"}, {}]");
}

// Every operand of rank 4 has three factors of its own and the batch.
TEST_F(FactorAssignmentTest, FactorsBeyondTheSixtyFourthAreAsTheOthers) {
  for (int operands : {20, 22, 23, 50, 9000}) {
    const std::vector<int64_t> dims = {8, 8, 2, 2};
    const auto rule =
        BatchRule(1, Shapes(std::vector<std::vector<int64_t>>(operands, dims)), Shapes({{8, 2}}));
    ASSERT_TRUE(rule.ok()) << rule.status();
    FactorAssignment f(*rule, mesh_, {}, Shardable(*rule));
    for (int t = 0; t < operands; ++t) f.Project(t, *Sharded({{A()}, {B()}, {}, {}}));
    for (int t = 0; t < operands; ++t) {
      ASSERT_EQ(f.TensorSharding(context_, t)->ToString(), "[{\"a\"}, {}, {}, {}]")
          << "operand " << t << " of " << operands;
    }
    EXPECT_EQ(f.TensorSharding(context_, operands)->ToString(), "[{\"a\"}, {}]");
  }
}

TEST_F(FactorAssignmentTest, AMinorFactorIsCutWhereTheMajorOnesAreDownToOne) {
  const ShardingRule rule = Rule({.rule = "(i j) -> i j"}, {{24}}, {{4, 6}});
  FactorAssignment both(rule, mesh_, {}, Shardable(rule));
  both.Project(0, *Sharded({{A(), B()}}));
  EXPECT_EQ(both.TensorSharding(context_, 1)->ToString(), "[{\"a\"}, {\"b\"}]");
  FactorAssignment major(rule, mesh_, {}, Shardable(rule));
  major.Project(0, *Sharded({{B(), A()}}));  // 2 of 4, and 2 more of the 4 of a
  EXPECT_EQ(major.TensorSharding(context_, 1)->ToString(), "[{\"b\", \"a\":(1)2}, {\"a\":(2)2}]");
  FactorAssignment minor(rule, mesh_, {}, Shardable(rule));
  minor.Project(1, *Sharded({{}, {B()}}));
  minor.Normalize();
  EXPECT_EQ(minor.TensorSharding(context_, 0)->ToString(), "[{}]");
}

TEST_F(FactorAssignmentTest, AnAxisIsOfTheFactorThatNamesItFirst) {
  const ShardingRule rule = Rule({.rule = "i j, j -> i j"}, {{8, 8}, {8}}, {{8, 8}});
  FactorAssignment f(rule, mesh_, {}, Shardable(rule));
  f.Project(0, *Sharded({{A()}, {}}));
  f.Project(1, *Sharded({{A()}}));
  EXPECT_EQ(f.TensorSharding(context_, 1)->ToString(), "[{}]");
}

TEST_F(FactorAssignmentTest, AResultIsPartialByOneOp) {
  const ShardingRule rule =
      Rule({.rule = "r c d -> r", .reduction = {{"c", PartialOp::kSum}, {"d", PartialOp::kMax}}},
           {{4, 8, 8}}, {{4}});
  FactorAssignment f(rule, mesh_, {}, Shardable(rule));
  f.Project(0, *Sharded({{}, {A()}, {B()}}));
  f.Normalize();
  EXPECT_EQ(f.TensorSharding(context_, 0)->ToString(), "[{}, {\"a\"}, {}]");
  EXPECT_EQ(f.TensorSharding(context_, 1)->ToString(), "[{}] partial=add{\"a\"}");
}

TEST_F(FactorAssignmentTest, EmptyDimensionsAreCutAsOthers) {
  const ShardingRule rule = Rule({.rule = "i j -> i j"}, {{8, 0}}, {{8, 0}});
  FactorAssignment f(rule, mesh_, {}, Shardable(rule));
  f.Project(0, *Sharded({{A()}, {B()}}));
  f.Normalize();
  EXPECT_EQ(f.TensorSharding(context_, 1)->ToString(), "[{\"a\"}, {\"b\"}]");
}

TEST(IndexSetTest, HoldsAnyNumbers) {
  IndexSet set, other;
  for (int i : {0, 63, 64, 127, 128, 40000}) {
    EXPECT_FALSE(set.Contains(i)) << i;
    set.Insert(i);
    EXPECT_TRUE(set.Contains(i)) << i;
  }
  EXPECT_FALSE(set.Contains(1));
  EXPECT_FALSE(set.Contains(65));
  EXPECT_FALSE(set.Contains(1000000));
  for (int i : {0, 63, 64, 127, 128, 40000, 7}) set.Erase(i);
  EXPECT_EQ(set, other);
  EXPECT_EQ(set.Hash(), other.Hash());
}

}  // namespace
}  // namespace shardcall
