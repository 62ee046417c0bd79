// SPDX-License-Identifier: Apache-2.0
// Which of two factors takes an axis that both want.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/propagation/engine.h"
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
  const auto results = PropagationEngine(program, rules).RunInEachOrder({});
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

// Two products of other sizes, in both of which x is smaller than the weight.
constexpr char kTwoKinds[] = R"(HloModule m
ENTRY main {
  x = f32[16,32] parameter(0), @[{'a'}, {}]
  v = f32[32,64] parameter(1), @[{}, {'a'}]
  w = f32[32,128] parameter(2), @[{}, {'a'}]
  h = f32[16,64] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[16,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[16,64] tanh(h)
  t = f32[16,128] tanh(g)
  ROOT r = (f32[16,64], f32[16,128]) tuple(s, t)
})";

TEST(Conflicts, AreToldWithWhatEachSideBrings) {
  Program program = Import(Expand(kTwoKinds), {.num_partitions = 8});
  RuleTable rules(program, {});
  const auto result = Propagate(program, rules, {});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->met.size(), 2);
  for (const auto& [name, weight] : {std::pair("h", "v"), std::pair("g", "w")}) {
    const InstrId op = FindInstr(program, name);
    const auto met = std::find_if(result->met.begin(), result->met.end(),
                                  [&](const Conflict& c) { return c.op == op; });
    ASSERT_NE(met, result->met.end()) << name;
    EXPECT_EQ(program.mesh->AxisName(met->axis), "\"a\"");
    EXPECT_EQ(met->value, program.leaves.leaf(op, 0));
    // The larger one first.
    EXPECT_EQ(met->sides[0].from, program.leaves.leaf(FindInstr(program, weight), 0));
    EXPECT_EQ(met->sides[1].from, program.leaves.leaf(FindInstr(program, "x"), 0));
    EXPECT_EQ(met->sides[0].dim, 1);
    EXPECT_EQ(met->sides[0].from_dim, 1);
    EXPECT_EQ(met->sides[1].dim, 0);
    EXPECT_EQ(met->sides[1].from_dim, 0);
  }
}

TEST(Conflicts, OpsOfOneRuleMayHaveAnOrderOfTheirOwn) {
  Program program = Import(Expand(kTwoKinds), {.num_partitions = 8});
  RuleTable rules(program, {});
  PropagationEngine engine(program, rules);
  const auto shardings = [&](std::vector<ConflictChoice> choices) {
    const auto r = engine.Run({.conflicts = ConflictOrder::kLarger, .choices = choices});
    EXPECT_TRUE(r.ok()) << r.status();
    std::string out;
    for (const char* name : {"h", "g"}) {
      out += r->sharding[program.leaves.leaf(FindInstr(program, name), 0).value]->ToString();
    }
    return out;
  };
  const InstrId h = FindInstr(program, "h");
  EXPECT_EQ(shardings({}), "[{}, {\"a\"}][{}, {\"a\"}]");
  EXPECT_EQ(shardings({{h, ConflictOrder::kSmaller}}), "[{\"a\"}, {}][{}, {\"a\"}]");
  EXPECT_EQ(shardings({}), "[{}, {\"a\"}][{}, {\"a\"}]");
}

TEST(Conflicts, WithoutAConflictThereIsOneResult) {
  Program program = Import(Expand(absl::StrReplaceAll(
                               kShardedWeights, {{"parameter(2), @[{'a'}, {}]", "parameter(2)"},
                                                 {"parameter(1), @[{'a'}, {}]", "parameter(1)"}})),
                           {.num_partitions = 8});
  RuleTable rules(program, {});
  const auto results = PropagationEngine(program, rules).RunInEachOrder({});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->size(), 1);
}

}  // namespace
}  // namespace shardcall
