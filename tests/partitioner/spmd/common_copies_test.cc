// SPDX-License-Identifier: Apache-2.0
// Copies that ops know of before the op that needs them.
#include "shardcall/partitioner/spmd/states/common_copies.h"

#include <gtest/gtest.h>

#include <utility>

#include "shardcall/partitioner/api/report.h"
#include "tests/support/charged.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

// Each collective takes far longer than what it sends. A slice needs all of v1, which it may have
// as one gather of v1 or of a0; a product and a sum need all of a0 and v0.
constexpr char kSlices[] =
    R"(HloModule m, allow_spmd_sharding_propagation_to_output={true,true,true}, num_partitions=8
ENTRY main {
  a0 = f32[512] parameter(0), sharding={mesh['a'=4,'b'=2], [{'a'}]}
  v0 = f32[512] negate(a0)
  v1 = f32[512] negate(v0)
  v2 = f32[256] slice(v1), slice={[0:256]}
  v3 = f32[512] multiply(a0, v1)
  v4 = f32[512] add(v3, v0)
  v5 = f32[256] tanh(v2)
  v6 = f32[256] slice(v4), slice={[0:256]}
  v7 = f32[256] slice(v1), slice={[0:256]}
  r1 = f32[256] custom-call(v6), custom_call_target="Sharding", sharding={mesh['a'=4,'b'=2], [{'a'}]}
  ROOT root = (f32[256], f32[256], f32[256]) tuple(v5, r1, v7)
})";

// A loop may carry a1 and what is made of it in any sharding; the slice after it needs all of a1.
constexpr char kLoop[] =
    R"(HloModule m, allow_spmd_sharding_propagation_to_output={true,true}, num_partitions=8
body {
  b = (s32[], f32[512], f32[512]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  c0 = f32[512] get-tuple-element(b), index=1
  c1 = f32[512] get-tuple-element(b), index=2
  v1 = f32[512] multiply(c0, c1)
  ROOT r = (s32[], f32[512], f32[512]) tuple(n, v1, c1)
}
condition {
  b = (s32[], f32[512], f32[512]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  trips = s32[] constant(16)
  ROOT l = pred[] compare(i, trips), direction=LT
}
ENTRY main {
  a0 = f32[512] parameter(0), sharding={mesh['a'=4,'b'=2], [{}]}
  a1 = f32[512] parameter(1), sharding={mesh['a'=4,'b'=2], [{'a', 'b'}]}
  v0 = f32[512] add(a0, a1)
  start = s32[] constant(0)
  init = (s32[], f32[512], f32[512]) tuple(start, v0, a1)
  loop = (s32[], f32[512], f32[512]) while(init), condition=condition, body=body
  w0 = f32[512] get-tuple-element(loop), index=1
  v2 = f32[512] multiply(w0, v0)
  v3 = f32[256] slice(a1), slice={[0:256]}
  r0 = f32[512] custom-call(v2), custom_call_target="Sharding", sharding={mesh['a'=4,'b'=2], [{'a'}]}
  ROOT root = (f32[512], f32[256]) tuple(r0, v3)
})";

TEST(CommonCopies, AValueIsGatheredOnceForAllThatFollows) {
  const std::pair<std::string, double> programs[] = {{kSlices, 4 * 512 * 3. / 4},
                                                     {kLoop, 4 * 512 * 7. / 8}};
  TextOptions options;
  options.search = StateSearch::kSmall;
  for (const auto& [text, bytes] : programs) {
    const auto p = PartitionText(text, options);
    ASSERT_TRUE(p.ok()) << p.status();
    ASSERT_EQ((*p)->local.collectives.size(), 1) << text;
    EXPECT_EQ((*p)->local.collectives[0].opcode, Opcode::kAllGather);
    EXPECT_EQ(TotalBytesMoved((*p)->local), bytes);
    EXPECT_EQ((*p)->plan.bytes, bytes);
    EXPECT_FALSE((*p)->plan.common_copies.empty());
    EXPECT_EQ(WhyChargedOtherwise(**p, options.spmd), "");
    EXPECT_EQ(WhyNotEqual(text, options), "");
  }
}

// The copies are the plan's own: they are what an op takes where it reshards its operand.
TEST(CommonCopies, AreThoseThatThePlanMakes) {
  TextOptions options;
  options.search = StateSearch::kNone;
  const auto p = PartitionText(R"(HloModule m, num_partitions=8
ENTRY main {
  x = f32[64,64] parameter(0), sharding={devices=[4,2]<=[8]}
  w = f32[64,64] parameter(1), sharding={devices=[8,1]<=[8]}
  d = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[4,2]<=[8]}
  y = f32[64,64] add(x, d), sharding={devices=[4,2]<=[8]}
  ROOT root = (f32[64,64], f32[64,64]) tuple(y, d), sharding={{devices=[4,2]<=[8]}, {devices=[4,2]<=[8]}}
})",
                               options);
  ASSERT_TRUE(p.ok()) << p.status();
  const Program& program = (*p)->global->program;
  const auto& order = program.module.comp(program.module.entry()).instructions;
  for (const auto& [leaf, state] : CopiesMadeBy(program, order, (*p)->plan)) {
    const std::string name(program.module.instr(program.leaves.instr(leaf)).name);
    EXPECT_TRUE(name == "x" || name == "w") << name;
    EXPECT_NE(state, (*p)->plan.state[leaf.value]);
  }
  const auto all = CopiesOfAll(program, order, (*p)->plan);
  ASSERT_EQ(all.size(), 1);  // only x is read twice by ops that compute
  EXPECT_TRUE(all[0].second->IsReplicated());
}

}  // namespace
}  // namespace shardcall
