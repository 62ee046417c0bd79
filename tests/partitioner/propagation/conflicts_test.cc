// SPDX-License-Identifier: Apache-2.0
// Which of two factors takes an axis that both want.
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/propagation/propagation.h"
#include "tests/partitioner/propagation/propagation_testing.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;

// Two products and the gradient of what is between them, each weight sharded as the batch is.
constexpr char kShardedWeights[] = R"(HloModule m
ENTRY main {
  x = f32[16,32] parameter(0), @[{'a'}, {}]
  v = f32[32,64] parameter(1), @[{'a'}, {}]
  w = f32[64,32] parameter(2), @[{'a'}, {}]
  h = f32[16,64] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[16,64] tanh(h)
  y = f32[16,32] dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[16,64] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT r = f32[16,64] multiply(g, t)
})";

TEST(Conflicts, AShardingFlowsAlongTheDataBeforeALaterWeightDecides) {
  // In the product g a weight could bring its axis to the other dimension.
  const Propagated p = PropagateModule(kShardedWeights);
  for (const char* name : {"h", "t", "y", "g"}) {
    EXPECT_THAT(p.Of(name), HasSubstr("[{\"a\"}, {}]")) << name;
  }
}

TEST(Conflicts, OrdersOfConflictsLeadToTheirOwnResults) {
  const std::string text = absl::StrReplaceAll(
      kShardedWeights, {{"parameter(1), @[{'a'}, {}]", "parameter(1), @[{}, {'a'}]"}});
  Program program = Import(Expand(text), {.num_partitions = 8});
  RuleTable rules(program, {});
  const auto results = PropagateInEachOrder(program, rules, {});
  ASSERT_TRUE(results.ok()) << results.status();
  const auto of = [&](const PropagationResult& r, const char* name) {
    return r.sharding[program.leaves.leaf(FindInstr(program, name), 0).value]->ToString();
  };
  std::vector<ConflictOrder> orders;
  for (const PropagationResult& r : *results) orders.push_back(r.conflicts);
  ASSERT_THAT(orders, ::testing::ElementsAre(ConflictOrder::kWait, ConflictOrder::kSmaller));
  // v is larger than x.
  EXPECT_THAT(of(results->front(), "h"), HasSubstr("[{}, {\"a\"}]"));
  EXPECT_THAT(of(results->back(), "h"), HasSubstr("[{\"a\"}, {}]"));
}

TEST(Conflicts, WithoutAConflictThereIsOneResult) {
  Program program = Import(Expand(absl::StrReplaceAll(
                               kShardedWeights, {{"parameter(2), @[{'a'}, {}]", "parameter(2)"},
                                                 {"parameter(1), @[{'a'}, {}]", "parameter(1)"}})),
                           {.num_partitions = 8});
  RuleTable rules(program, {});
  const auto results = PropagateInEachOrder(program, rules, {});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->size(), 1);
}

}  // namespace
}  // namespace shardcall
