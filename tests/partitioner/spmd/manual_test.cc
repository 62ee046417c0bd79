// SPDX-License-Identifier: Apache-2.0
// Manual regions in both styles, whole and partial, with collectives inside,
// against the evaluation in which the region runs once per device.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

// Mesh a=4, b=2; x enters cut over (a, b).
constexpr char kGspmd[] = R"(
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  p = f32[@(A*4),@(B*2)] parameter(0)<0:2>
  g = f32[@(A*4),@(B*2)] add(p, p)<1:2>
  c = f32[@(A*4),@(B*2)] custom-call(g), custom_call_target="Sharding", sharding={devices=[4,2]<=[8]}
  x = f32[@A,@B] custom-call(c), custom_call_target="SPMDFullToShardShape", sharding={manual}
BODY
  o = f32[@A,@B] copy(y), sharding={manual}
  f = f32[@(A*4),@(B*2)] custom-call(o), custom_call_target="SPMDShardToFullShape", sharding={devices=[4,2]<=[8]}
  ROOT r = f32[@(A*4),@(B*2)] subtract(f, p)<2:2>
}
)";

void VerifyRegion(const std::string& body) {
  VerifyFamily({.text = absl::StrReplaceAll(kGspmd, {{"BODY", body}}),
                .sizes = {{{'A', 2}, {'B', 4}}, {{'A', 3}, {'B', 2}}, {{'A', 1}, {'B', 6}}},
                .meshes = {{{4, 2}}, {{2, 2, 2}}},
                .max_cases = 60,
                .no_fallback = true});
}

// The weight is cut for the product, but each device has it whole, outside and so inside.
TEST(Manual, WhatIsWholeOutsideOfARegionIsWholeInside) {
  EXPECT_EQ(BytesMoved(R"(
ENTRY main {
  a = f32[64,32] parameter(0), sharding={devices=[4,2]<=[8]}
  w = f32[32,32] parameter(1), sharding={replicated}
  x = f32[16,32] custom-call(a), custom_call_target="SPMDFullToShardShape", sharding={devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}, backend_config="unspecified_dims=[0,1]"
  v = f32[32,32] custom-call(w), custom_call_target="SPMDFullToShardShape", sharding={devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}, backend_config="unspecified_dims=[0,1]"
  s = f32[16,32] sine(x)
  d = f32[16,32] dot(s, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[16,32] custom-call(d), custom_call_target="Sharding", sharding={devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}
  ROOT r = f32[64,32] custom-call(y), custom_call_target="SPMDShardToFullShape", sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
}
)"),
            16 * 32 / 2 * 4);
}

// What enters is cut over the manual axes alone, also where it is sharded over others before.
TEST(Manual, WhatIsShardedOverFreeAxesTooEntersByTheManualOnes) {
  const auto verified = VerifyText(R"(HloModule m, num_partitions=8
ENTRY main {
  p = f32[32,8] parameter(0), sharding={devices=[8,1]<=[8]}
  c = f32[32,8] custom-call(p), custom_call_target="Sharding", sharding={devices=[4,2]<=[8]}
  f = f32[8,8] custom-call(c), custom_call_target="SPMDFullToShardShape", sharding={devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}
  n = f32[8,8] negate(f)
  e = f32[8,8] custom-call(n), custom_call_target="Sharding", sharding={devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}
  ROOT s = f32[32,8] custom-call(e), custom_call_target="SPMDShardToFullShape", sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
}
)",
                                   {});
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->status, VerifyResult::Status::kOk) << verified->reason;
}

TEST(Manual, LocalWork) { VerifyRegion("  y = f32[@A,@B] negate(x), sharding={manual}"); }

TEST(Manual, AllReduceOverOneAxis) {
  VerifyRegion(
      "  y = f32[@A,@B] all-reduce(x), channel_id=1, replica_groups={{0,2,4,6},{1,3,5,7}}, "
      "use_global_device_ids=true, to_apply=add, sharding={manual}");
}

TEST(Manual, PermuteInARing) {
  VerifyRegion(
      "  y = f32[@A,@B] collective-permute(x), channel_id=1, "
      "source_target_pairs={{0,2},{2,4},{4,6},{6,0},{1,3},{3,5},{5,7},{7,1}}, sharding={manual}");
}

TEST(Manual, GatherThenScatter) {
  VerifyRegion(
      "  h = f32[@A,@(B*2)] all-gather(x), channel_id=1, "
      "replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={1}, use_global_device_ids=true, "
      "sharding={manual}\n"
      "  y = f32[@A,@B] reduce-scatter(h), channel_id=1, "
      "replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={1}, use_global_device_ids=true, "
      "to_apply=add, sharding={manual}");
}

// What ends a collective takes the result of its start, which is a tuple, as a whole.
TEST(Manual, CollectivesThatAreStartedAndEnded) {
  VerifyRegion(
      "  s = (f32[@A,@B], f32[@A,@(B*2)]) all-gather-start(x), channel_id=1, "
      "replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={1}, use_global_device_ids=true\n"
      "  h = f32[@A,@(B*2)] all-gather-done(s), sharding={manual}\n"
      "  t = ((f32[@A,@(B*2)]), f32[@A,@B]) reduce-scatter-start(h), channel_id=2, "
      "replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={1}, use_global_device_ids=true, "
      "to_apply=add\n"
      "  i = f32[@A,@B] reduce-scatter-done(t), sharding={manual}\n"
      "  u = (f32[@A,@B], f32[@A,@B]) collective-permute-start(i), channel_id=3, "
      "source_target_pairs={{0,2},{2,4},{4,6},{6,0},{1,3},{3,5},{5,7},{7,1}}\n"
      "  y = f32[@A,@B] collective-permute-done(u), sharding={manual}");
}

TEST(Manual, PartitionIdMakesEveryDeviceDifferent) {
  VerifyRegion(
      "  i = u32[] partition-id(), sharding={manual}\n"
      "  k = f32[] convert(i), sharding={manual}\n"
      "  b = f32[@A,@B] broadcast(k), dimensions={}, sharding={manual}\n"
      "  y = f32[@A,@B] add(x, b), sharding={manual}");
}

TEST(Manual, UnknownTargetsAreNoErrorInside) {
  VerifyRegion(
      "  y = f32[@A,@B] custom-call(x), custom_call_target=\"custom_relu\", sharding={manual}");
}

// Shardy: only axis a (or b) is manual, the other one is free inside.
std::string ShardyText(const std::string& manual, const std::string& in, const std::string& local,
                       const std::string& body) {
  return absl::StrReplaceAll(
      R"(HloModule test, num_partitions=8, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=4, "b"=2]>}}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  p = f32[8,12] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"a\"}, {\"b\"}]>"}
  w = f32[12,12] parameter(1), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{}, {\"b\"}]>"}
  g = f32[8,12] dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  x = LOCAL custom-call(g), custom_call_target="xla.sdy.GlobalToLocalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [IN]>]>",xla.sdy.manual_axes="#sdy<manual_axes{MANUAL}>"}
BODY
  f = f32[8,12] custom-call(y), custom_call_target="xla.sdy.LocalToGlobalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.manual_axes="#sdy<manual_axes{MANUAL}>",xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [IN]>]>"}
  ROOT r = f32[8,12] subtract(f, p)
}
)",
      {{"MANUAL", manual}, {"IN", in}, {"LOCAL", local}, {"BODY", body}});
}

TEST(Manual, PartlyManualRegionsKeepFreeAxesToThePartitioner) {
  for (const char* free : {"{}", "{?}", "{\\\"b\\\"}"}) {
    SCOPED_TRACE(free);
    EXPECT_EQ(WhyNotEqual(ShardyText("\\\"a\\\"", absl::StrCat("{\\\"a\\\"}, ", free), "f32[2,12]",
                                     "  n = f32[2,12] all-reduce(x), channel_id=1, "
                                     "replica_groups={{0,2,4,6},{1,3,5,7}}, "
                                     "use_global_device_ids=true, to_apply=add\n"
                                     "  d = f32[12,12] dot(x, n), lhs_contracting_dims={0}, "
                                     "rhs_contracting_dims={0}\n"
                                     "  y = f32[2,12] dot(x, d), lhs_contracting_dims={1}, "
                                     "rhs_contracting_dims={0}"),
                          {}),
              "");
  }
}

TEST(Manual, DimensionsCutByManualAndFreeAxes) {
  EXPECT_EQ(WhyNotEqual(ShardyText("\\\"b\\\"", "{?}, {\\\"b\\\", ?}", "f32[8,6]",
                                   "  n = f32[8,6] negate(x)\n"
                                   "  z = f32[] constant(0)\n"
                                   "  s = f32[8] reduce(n, z), dimensions={1}, to_apply=add\n"
                                   "  t = f32[8,6] broadcast(s), dimensions={0}\n"
                                   "  y = f32[8,6] add(t, x)"),
                        {}),
            "");
}

TEST(Manual, UnevenFreeDimensionsInside) {
  // 12 / 4 manual pieces are 3 wide: b does not divide them.
  EXPECT_EQ(WhyNotEqual(ShardyText("\\\"a\\\"", "{\\\"b\\\"}, {\\\"a\\\", ?}", "f32[8,3]",
                                   "  y = f32[8,3] multiply(x, x)"),
                        {}),
            "");
}

TEST(Manual, SumsOverFreeAxesStayInsideTheirManualCoordinate) {
  EXPECT_EQ(WhyNotEqual(ShardyText("\\\"a\\\"", "{\\\"a\\\"}, {\\\"b\\\"}", "f32[2,12]",
                                   "  z = f32[] constant(0)\n"
                                   "  s = f32[] reduce(x, z), dimensions={0,1}, to_apply=add\n"
                                   "  t = f32[2,12] broadcast(s), dimensions={}\n"
                                   "  y = f32[2,12] add(t, x)"),
                        {}),
            "");
}

}  // namespace
}  // namespace shardcall
