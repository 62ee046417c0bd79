// SPDX-License-Identifier: Apache-2.0
// What instructions cost under the cost model.
#include "shardcall/partitioner/ir/shapes/instruction_cost.h"

#include <map>
#include <string>

#include "tests/partitioner/ir/text_util.h"

namespace shardcall {
namespace {

// A product, a byte and a second cost the same.
const CostModel kUnits{.flop_rate = 2, .memory_rate = 1};

// Seconds by the name of the entry's instructions.
std::map<std::string, double> Seconds(absl::string_view lines) {
  const absl::StatusOr<Module> m = Parse(InEntry(lines));
  EXPECT_TRUE(m.ok()) << m.status();
  std::map<std::string, double> out;
  if (!m.ok()) return out;
  for (InstrId id : m->comp(m->entry()).instructions) {
    const Instruction& i = m->instr(id);
    out[std::string(i.name)] = ComputeSeconds(*m, i, kUnits);
  }
  return out;
}

TEST(InstructionCost, ADotTakesItsProducts) {
  const auto s = Seconds(R"(
  x = f32[2,3,5] parameter(0)
  y = f32[2,5,7] parameter(1)
  ROOT d = f32[2,3,7] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1})");
  EXPECT_EQ(s.at("d"), 2 * 3 * 7 * 5);
  EXPECT_EQ(s.at("x"), 0);
}

TEST(InstructionCost, AConvolutionTakesThoseOfItsWindowAndInputFeatures) {
  const auto s = Seconds(R"(
  x = f32[2,8,6] parameter(0)
  whole = f32[3,6,12] parameter(1)
  grouped = f32[3,2,12] parameter(2)
  a = f32[2,6,12] convolution(x, whole), window={size=3}, dim_labels=b0f_0io->b0f
  b = f32[2,6,12] convolution(x, grouped), window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=3
  ROOT t = (f32[2,6,12], f32[2,6,12]) tuple(a, b))");
  EXPECT_EQ(s.at("a"), 2 * 6 * 12 * 3 * 6);
  EXPECT_EQ(s.at("b"), 2 * 6 * 12 * 3 * 2);
}

TEST(InstructionCost, OtherOpsTakeTheirBytesUnlessNothingIsTouched) {
  const auto s = Seconds(R"(
  x = f32[10] parameter(0)
  a = f32[10] add(x, x)
  r = f32[2,5] reshape(a)
  b = f32[3,2,5] broadcast(r), dimensions={1,2}
  ROOT t = (f32[3,2,5], f32[10]) tuple(b, a))");
  EXPECT_EQ(s.at("a"), 3 * 40);
  EXPECT_EQ(s.at("b"), 40 + 120);
  EXPECT_EQ(s.at("r"), 0);
  EXPECT_EQ(s.at("t"), 0);
}

TEST(InstructionCost, ComputationsCostAsOftenAsTheyRun) {
  const auto m = Parse(R"(HloModule m
one { ROOT p = s32[] parameter(0) }
two { ROOT p = s32[] parameter(0) }
test {
  p = s32[] parameter(0)
  k = s32[] constant(12)
  ROOT c = pred[] compare(p, k), direction=LT
}
ENTRY e {
  x = s32[] parameter(0)
  i = s32[] call(x), to_apply=one
  f = s32[] fusion(x), kind=kLoop, calls=one
  c = s32[] conditional(x, x, x), branch_computations={one, two}
  w = s32[] while(x), condition=test, body=two
  ROOT t = (s32[], s32[], s32[], s32[]) tuple(i, f, c, w)
}
)");
  ASSERT_TRUE(m.ok()) << m.status();
  const std::map<std::string, double> runs = {{"one", 5}, {"two", 7}, {"test", 1}};
  std::map<std::string, double> found;
  for (InstrId id : m->comp(m->entry()).instructions) {
    if (!HasTrait(m->instr(id).opcode, kComposed)) continue;
    found[std::string(m->instr(id).name)] =
        CostOfRuns(*m, id, 10, [&](CompId c) { return runs.at(std::string(m->comp(c).name)); });
  }
  // One branch of a conditional runs. The loop does not tell how often it runs.
  const std::map<std::string, double> expected = {{"i", 5}, {"f", 5}, {"c", 7}, {"w", 10 * 8}};
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace shardcall
