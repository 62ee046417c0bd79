// SPDX-License-Identifier: Apache-2.0
// What the plan asks strategies: whose seconds count, and that they do.
#include "shardcall/partitioner/spmd/plan/strategy.h"

#include <string>

#include "absl/strings/string_view.h"
#include "tests/partitioner/spmd/plan_testing.h"

namespace shardcall {
namespace {

// A product and a byte that is computed take a second; what is sent takes nearly none.
TextOptions Units() {
  TextOptions options;
  options.spmd.cost = {.bandwidth = 1e15, .flop_rate = 2, .memory_rate = 1, .latency = 1e-15};
  return options;
}

const Decision* DecisionOf(const PartitionedProgram& p, absl::string_view name) {
  const Module& m = p.global->program.module;
  for (int k = 0; k < m.num_instructions(); ++k) {
    if (m.instr(InstrId(k)).name == name) return p.plan.ops[k].decision;
  }
  return nullptr;
}

TEST(Strategy, OpsThatTakeFlopsHaveOneThatCountsThem) {
  for (int k = 0; k < kNumOpcodes; ++k) {
    const auto op = static_cast<Opcode>(k);
    EXPECT_EQ(StrategyOf(op).seconds != nullptr, HasTrait(op, kTakesFlops)) << OpcodeText(op);
  }
}

TEST(Strategy, ADotTakesTheProductsOfItsShards) {
  const auto p = Done(R"(
  x = f32[8,16] parameter(0), sharding={devices=[4,1]<=[4]}
  w = f32[16,32] parameter(1)
  ROOT d = f32[8,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[4,1]<=[4]}
)",
                      4, Units());
  const Decision* d = DecisionOf(*p, "d");
  ASSERT_TRUE(d != nullptr && d->strategy == &StrategyOf(Opcode::kDot));
  EXPECT_NEAR(d->seconds, 8 / 4 * 32 * 16, 1e-6);
}

// As in the costs of a program of one device, whatever factors its rule has for the window.
TEST(Strategy, AConvolutionTakesTheProductsOfItsWindow) {
  const auto p = Done(R"(
  x = f32[8,9,5] parameter(0), sharding={devices=[4,1,1]<=[4]}
  k = f32[3,5,7] parameter(1)
  ROOT c = f32[8,4,7] convolution(x, k), window={size=3 stride=2}, dim_labels=b0f_0io->b0f, sharding={devices=[4,1,1]<=[4]}
)",
                      4, Units());
  const Decision* d = DecisionOf(*p, "c");
  ASSERT_TRUE(d != nullptr && d->strategy == &StrategyOf(Opcode::kConvolution));
  EXPECT_NEAR(d->seconds, 8 / 4 * 4 * 7 * 3 * 5, 1e-6);
}

TEST(Strategy, OtherOpsReadAndWriteTheirShards) {
  const auto p = Done(R"(
  x = f32[8,16] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT a = f32[8,16] add(x, x), sharding={devices=[4,1]<=[4]}
)",
                      4, Units());
  const Decision* d = DecisionOf(*p, "a");
  ASSERT_NE(d, nullptr);
  EXPECT_NEAR(d->seconds, 3 * 8 / 4 * 16 * 4, 1e-6);
}

TEST(Strategy, MovedAxesDoNotChangeWhatAnOpComputes) {
  const auto p = Done(R"(
  x = f32[8,16] parameter(0), sharding={devices=[4,1]<=[4]}
  w = f32[16,32] parameter(1)
  d = f32[8,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT n = f32[8,32] negate(d), sharding={devices=[4,1]<=[4]}
)",
                      4, Units());
  const Module& m = p->global->program.module;
  for (const absl::string_view name : {"d", "n"}) {
    const Decision* d = DecisionOf(*p, name);
    ASSERT_NE(d, nullptr) << name;
    for (int k = 0; k < m.num_instructions(); ++k) {
      const Instruction& instr = m.instr(InstrId(k));
      if (instr.name != name) continue;
      const double own = StrategySeconds(StrategyOf(instr.opcode), Units().spmd.cost, m, instr, *d);
      EXPECT_GT(own, 0);
      EXPECT_EQ(StrategySeconds(kMovedStrategy, Units().spmd.cost, m, instr, *d), own) << name;
    }
  }
}

}  // namespace
}  // namespace shardcall
