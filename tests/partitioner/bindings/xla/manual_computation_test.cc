// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/manual_computation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::Not;

std::unique_ptr<PartitionedProgram> Made(const std::string& text) {
  auto program = PartitionText(text, {});
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : nullptr;
}
ManualComputation Wrapped(const PartitionedProgram& program) {
  auto made = AsManualComputation(program.local);
  EXPECT_TRUE(made.ok()) << made.status();
  const absl::Status valid = VerifyModule(made->module, "test.hlo");
  EXPECT_TRUE(valid.ok()) << valid << PrintModule(made->module);
  return *std::move(made);
}
// What is sent, by opcode.
std::string Sent(const PartitionedProgram& program) {
  std::string out;
  for (const auto& [opcode, total] : TotalsByOpcode(program.local)) {
    absl::StrAppend(&out, opcode, " ", total.count, " ", total.bytes_weighted, "\n");
  }
  return out;
}

// A loop, a reduction, and three results.
constexpr char kLoop[] = R"(HloModule loop, num_partitions=4,
  allow_spmd_sharding_propagation_to_output={true},
  input_output_alias={ {0}: (0, {}, may-alias) }

body {
  s = (s32[], f32[8,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,6] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  twice = f32[8,6] add(x, x)
  ROOT t = (s32[], f32[8,6]) tuple(next, twice)
}
condition {
  s = (s32[], f32[8,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[8,6] parameter(0), sharding={devices=[2,2]<=[4]}
  y = f32[6,5] parameter(1), sharding={devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}
  zero = s32[] constant(0)
  init = (s32[], f32[8,6]) tuple(zero, x)
  loop = (s32[], f32[8,6]) while(init), condition=condition, body=body
  doubled = f32[8,6] get-tuple-element(loop), index=1
  product = f32[8,5] dot(doubled, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  count = s32[] get-tuple-element(loop), index=0
  ROOT out = (f32[8,6], f32[8,5], s32[]) tuple(doubled, product, count)
}
)";

TEST(ManualComputationTest, PartitioningItGivesThePerDeviceProgramAgain) {
  const auto first = Made(kLoop);
  const ManualComputation whole = Wrapped(*first);
  EXPECT_TRUE(whole.shardy);
  const std::string text = PrintModule(whole.module);
  const auto again = Made(text);
  EXPECT_NE(Sent(*first), "");
  EXPECT_EQ(Sent(*again), Sent(*first));
  ASSERT_EQ(again->local.parameters.size(), first->local.parameters.size());
  for (size_t k = 0; k < first->local.outputs.size(); ++k) {
    EXPECT_EQ(again->local.outputs[k]->sharding->ToString(),
              first->local.outputs[k]->sharding->ToString());
  }
  EXPECT_EQ(WhyNotEqual(text, {}), "");
}

TEST(ManualComputationTest, ParametersAndResultsHaveTheirWholeShapesAndAreDonatedAsBefore) {
  const ManualComputation whole = Wrapped(*Made(kLoop));
  const Module& m = whole.module;
  EXPECT_EQ(m.header.entry_result_layout->ToString(false), "(f32[8,6], f32[8,5], s32[])");
  EXPECT_EQ(m.header.entry_parameter_layouts[1]->ToString(false), "f32[6,5]");
  ASSERT_EQ(m.header.aliases.size(), 1);
  EXPECT_EQ(m.header.aliases[0].parameter, 0);
  EXPECT_THAT(PrintModule(m), HasSubstr("xla.sdy.manual_computation_body"));
}

TEST(ManualComputationTest, AnUnreducedResultStaysUnreduced) {
  const auto first = Made(R"(HloModule sums, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[4,8] parameter(0), sharding={devices=[1,4]<=[4]}
  zero = f32[] constant(0)
  sums = f32[4] reduce(x, zero), dimensions={1}, to_apply=add
  ROOT r = f32[4] custom-call(sums), custom_call_target="Sharding", sharding={unreduced}
}
)");
  const std::string text = PrintModule(Wrapped(*first).module);
  EXPECT_THAT(text, HasSubstr("unreduced={"));
  EXPECT_EQ(Sent(*Made(text)), "");
}

// XLA takes what leaves a manual computation for a sum.
TEST(ManualComputationTest, AMaximumLeavesOverItsAxesAndIsReducedOutsideByEachDeviceAlone) {
  const auto first = Made(R"(HloModule maxima, num_partitions=8,
  allow_spmd_sharding_propagation_to_output={true}

max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
ENTRY main {
  x = f32[4,8,6] parameter(0), sharding={devices=[2,4,1]<=[8]}
  least = f32[] constant(-inf)
  maxima = f32[4,6] reduce(x, least), dimensions={1}, to_apply=max
  r = f32[4,6] custom-call(maxima), custom_call_target="Sharding", sharding={mesh['a'=2,'b'=4], [{'a'}, {}], unreduced=max{'b'}}
  ROOT t = (f32[4,8,6], f32[4,6]) tuple(x, r)
}
)");
  const ManualComputation whole = Wrapped(*first);
  EXPECT_TRUE(whole.shardy);
  const std::string text = PrintModule(whole.module);
  EXPECT_THAT(text, HasSubstr("f32[4,4,6]"));  // over b, and a
  EXPECT_THAT(text, HasSubstr("unreduced=max{"));
  EXPECT_EQ(whole.module.header.entry_result_layout->ToString(false), "(f32[4,8,6], f32[4,6])");
  const auto again = Made(text);
  EXPECT_EQ(Sent(*first), "");
  EXPECT_EQ(Sent(*again), "");
  for (size_t k = 0; k < first->local.outputs.size(); ++k) {
    EXPECT_EQ(again->local.outputs[k]->sharding->ToString(),
              first->local.outputs[k]->sharding->ToString());
  }
  EXPECT_EQ(WhyNotEqual(text, {}), "");
}

// The result lies on the devices in an order that no axes of the parameter's mesh have.
constexpr char kTwoOrders[] = R"(HloModule orders, num_partitions=4

ENTRY main {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  y = f32[8] add(x, x)
  ROOT r = f32[8] custom-call(y), custom_call_target="Sharding", sharding={devices=[4]0,3,1,2}
}
)";

TEST(ManualComputationTest, WhatLiesOnTwoMeshesIsWrittenForGspmd) {
  const auto first = Made(kTwoOrders);
  const ManualComputation whole = Wrapped(*first);
  EXPECT_FALSE(whole.shardy);
  const std::string text = PrintModule(whole.module);
  EXPECT_THAT(text, Not(HasSubstr("xla.sdy")));
  EXPECT_THAT(text, HasSubstr("SPMDFullToShardShape"));
  EXPECT_THAT(text, HasSubstr("sharding={devices=[4]0,3,1,2}"));
}

TEST(ManualComputationTest, WhatIsReplicatedLiesOnAnyMesh) {
  std::string text = kTwoOrders;
  text.replace(text.find("{devices=[4]<=[4]}"), 18, "{replicated}");
  EXPECT_TRUE(Wrapped(*Made(text)).shardy);
}

TEST(ManualComputationTest, ControlDependenciesAreCallsThatXlaUnderstands) {
  const auto program = Made(R"(HloModule m, num_partitions=2

ENTRY main {
  x = f32[8] parameter(0), sharding={devices=[2]<=[2]}
  first = f32[8] sine(x)
  second = f32[8] cosine(x), control-predecessors={first}
  ROOT r = (f32[8], f32[8]) tuple(first, second)
}
)");
  ASSERT_NE(program, nullptr);
  EXPECT_THAT(PrintModule(program->local.module), HasSubstr("control-predecessors="));
  const std::string text = PrintModule(Wrapped(*program).module);
  EXPECT_THAT(text, HasSubstr("= () custom-call(%first, %second), "
                              "custom_call_target=\"control_dep\""));
  EXPECT_THAT(text, Not(HasSubstr("control-predecessors=")));
  // Read again, it is a control dependency.
  const auto again = Made(text);
  ASSERT_NE(again, nullptr);
  const std::string local = PrintModule(again->local.module);
  EXPECT_THAT(local, HasSubstr("control-predecessors="));
  EXPECT_THAT(local, Not(HasSubstr("control_dep")));
}

// In StableHLO a tuple is an operand for each of its elements, and XLA wants two operands.
TEST(ManualComputationTest, AnElementStandsForATupleInACallForOrder) {
  std::string text = kLoop;
  const std::string product = "rhs_contracting_dims={0}";
  text.insert(text.find(product) + product.size(), ", control-predecessors={loop}");
  const std::string between =
      "  loop2 = (s32[], f32[8,6]) while(loop), condition=condition, "
      "body=body, control-predecessors={product}\n  ROOT";
  text.replace(text.rfind("  ROOT"), 6, between);
  const auto program = Made(text);
  ASSERT_NE(program, nullptr);
  const Module made = Wrapped(*program).module;
  int calls = 0;
  for (int k = 0; k < made.num_instructions(); ++k) {
    const Instruction& i = made.instr(InstrId(k));
    if (i.opcode != Opcode::kCustomCall || i.as<CustomCallAttrs>().target != "control_dep")
      continue;
    ++calls;
    ASSERT_EQ(i.operand_count, 2);
    for (InstrId operand : made.operands(i)) EXPECT_TRUE(made.instr(operand).shape->IsArray());
  }
  EXPECT_GE(calls, 1) << PrintModule(made);
}

TEST(ManualComputationTest, AProgramWithoutResultsIsWrittenForGspmd) {
  const auto first = Made(R"(HloModule none, num_partitions=4

ENTRY main {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  ROOT r = () tuple()
}
)");
  EXPECT_FALSE(Wrapped(*first).shardy);
}

TEST(ManualComputationTest, UnevenShardsAreRefused) {
  const auto uneven = Made(R"(HloModule uneven, num_partitions=4

ENTRY main {
  ROOT x = f32[6] parameter(0), sharding={devices=[4]<=[4]}
}
)");
  EXPECT_THAT(AsManualComputation(uneven->local),
              Fails("E336", "f32[6] whose shards are not even"));
}

TEST(ManualComputationTest, TuplesOfTuplesAreRefused) {
  const auto parameter = Made(R"(HloModule tuples, num_partitions=4

ENTRY main {
  x = (f32[8], f32[8]) parameter(0)
  ROOT r = f32[8] get-tuple-element(x), index=0
}
)");
  EXPECT_THAT(AsManualComputation(parameter->local), Fails("E336", "a tuple among its parameters"));
  const auto result = Made(R"(HloModule tuples, num_partitions=4

ENTRY main {
  x = f32[8] parameter(0)
  one = (f32[8]) tuple(x)
  ROOT r = ((f32[8])) tuple(one)
}
)");
  EXPECT_THAT(AsManualComputation(result->local), Fails("E336", "a tuple among"));
}

}  // namespace
}  // namespace shardcall
