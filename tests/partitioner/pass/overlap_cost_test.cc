// SPDX-License-Identifier: Apache-2.0
// The times by which the scheduling of collectives compares.
#include "shardcall/partitioner/pass/overlap_cost.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

InstrId Named(const Module& m, absl::string_view name) {
  for (int k = 0; k < m.num_instructions(); ++k) {
    if (m.instr(InstrId(k)).name == name) return InstrId(k);
  }
  return InstrId();
}

// A loop whose body touches 3 x 4 KiB, and whose counter ends at `limit`.
std::string Loop(absl::string_view limit) {
  return absl::StrCat(R"(HloModule m
body {
  p = (s32[], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[1024] get-tuple-element(p), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[1024] add(x, x)
  ROOT r = (s32[], f32[1024]) tuple(n, y)
}
condition {
  p = (s32[], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  k = s32[] )",
                      limit, R"(
  ROOT c = pred[] compare(i, k), direction=LT
}
ENTRY e {
  x = f32[1024] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[1024]) tuple(z, x)
  ROOT w = (s32[], f32[1024]) while(t), condition=condition, body=body
}
)");
}

TEST(OverlapCost, ALoopTakesItsTripCountOrTheAssumedOne) {
  const CostModel cost{.trip_count = 16};
  const absl::StatusOr<Module> known = ParseText(Loop("constant(100)"));
  const absl::StatusOr<Module> unknown =
      ParseText(Loop("get-tuple-element(p), index=0"));  // it never ends, and does not say so
  ASSERT_TRUE(known.ok() && unknown.ok()) << known.status() << unknown.status();
  const double a = OverlapCosts(*known, cost).Work(Named(*known, "w"));
  const double b = OverlapCosts(*unknown, cost).Work(Named(*unknown, "w"));
  EXPECT_NEAR(a / b, 100.0 / 16, 1e-9);
}

TEST(OverlapCost, ACollectiveTakesWhatItSends) {
  const absl::StatusOr<Module> m = ParseText(R"(HloModule m, num_partitions=4
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  x = f32[1024] parameter(0)
  g = f32[4096] all-gather(x), dimensions={0}, channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true
  r = f32[1024] all-reduce(x), to_apply=add, channel_id=2, replica_groups={{0,1},{2,3}}, use_global_device_ids=true
  p = f32[1024] collective-permute(x), channel_id=3, source_target_pairs={{0,1},{1,0},{2,2},{3,3}}
  ROOT t = (f32[4096], f32[1024], f32[1024]) tuple(g, r, p)
}
)");
  ASSERT_TRUE(m.ok()) << m.status();
  const CostModel cost{.bandwidth = 1e6, .latency = 7e-6};  // a microsecond for a byte
  const OverlapCosts costs(*m, cost);
  EXPECT_NEAR(costs.Transfer(Named(*m, "g")), 7 + 3 * 4096, 1e-6);
  EXPECT_NEAR(costs.Transfer(Named(*m, "r")), 7 + 4096, 1e-6);  // 2 x (g - 1) / g
  EXPECT_NEAR(costs.Transfer(Named(*m, "p")), 7 + 2048, 1e-6);  // half of the devices send
}

}  // namespace
}  // namespace shardcall
