// SPDX-License-Identifier: Apache-2.0
// Numbers that each device would draw for itself are drawn on one device, and
// all hold those. Devices of the runtime draw differently, so a copy is seen.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Rng, UnderEverySharding) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  low = f32[] constant(0)
  high = f32[] constant(64)
  u = f32[@A,@B] rng(low, high), distribution=rng_uniform<1:2>
  f = f32[@A,@B] floor(u)
  v = f32[@A,@B] rng(low, high), distribution=rng_uniform
  g = f32[@A,@B] floor(v)
  s = f32[@A,@B] add(f, g)
  ROOT r = f32[@A,@B] add(s, x)<2:2>
)",
                .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 5}, {'B', 3}}},
                .max_cases = 200,
                .no_fallback = true});
}

TEST(Rng, OfEveryType) {
  for (const char* type : {"s8", "u16", "s32", "u64", "bf16", "f16", "f32", "f64"}) {
    SCOPED_TRACE(type);
    EXPECT_EQ(WhyNotEqual(absl::StrReplaceAll(R"(HloModule m, num_partitions=4

ENTRY e {
  low = TYPE[] constant(3)
  high = TYPE[] constant(90)
  ROOT u = TYPE[9,2] rng(low, high), distribution=rng_uniform, sharding={devices=[4,1]<=[4]}
}
)",
                                              {{"TYPE", type}}),
                          {}),
              "");
  }
}

TEST(Rng, InALoopEveryIterationDrawsAnew) {
  EXPECT_EQ(WhyNotEqual(R"(HloModule m, num_partitions=4

body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  x = f32[8] get-tuple-element(s), index=1
  low = f32[] constant(0)
  high = f32[] constant(64)
  u = f32[8] rng(low, high), distribution=rng_uniform
  f = f32[8] floor(u)
  y = f32[8] add(f, x)
  ROOT t = (s32[], f32[8]) tuple(n, y)
}

condition {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(i, three), direction=LT
}

ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  zero = s32[] constant(0)
  init = (s32[], f32[8]) tuple(zero, x)
  w = (s32[], f32[8]) while(init), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1
}
)",
                        {}),
            "");
}

TEST(RngState, IsThatOfOneDevice) {
  EXPECT_EQ(WhyNotEqual(R"(HloModule m, num_partitions=4

ENTRY e {
  a = u64[2] rng-get-and-update-state(), delta=3
  b = u64[2] rng-get-and-update-state(), delta=3, sharding={devices=[2,2]<=[4] last_tile_dim_replicate}
  ROOT r = u64[2] subtract(b, a), sharding={devices=[2,2]<=[4] last_tile_dim_replicate}
}
)",
                        {}),
            "");
  EXPECT_EQ(WhyNotEqual(R"(HloModule m, num_partitions=4

ENTRY e {
  ROOT a = u64[2] rng-get-and-update-state(), delta=3
}
)",
                        {}),
            "");
}

TEST(Rng, OnTheDeviceThatItsShardingNames) {
  const auto p = PartitionText(R"(HloModule m, num_partitions=4

ENTRY e {
  low = f32[] constant(0)
  high = f32[] constant(64)
  ROOT u = f32[8] rng(low, high), distribution=rng_uniform, sharding={maximal device=2}
}
)",
                               {});
  ASSERT_TRUE(p.ok()) << p.status();
  const std::string local = LocalText(**p);
  EXPECT_THAT(local, AllOf(HasSubstr(" rng("), HasSubstr("constant(2)")));
  EXPECT_THAT(local.substr(local.find("ENTRY")), Not(HasSubstr(" rng(")));
}

// A region of a mesh a=4, b=2 over both axes, or over a alone.
std::string Region(const std::string& manual) {
  const bool both = manual.size() > 1;
  return absl::StrReplaceAll(
      R"(HloModule m, num_partitions=8, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=4, "b"=2]>}}

ENTRY main {
  p = f32[8,12] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{\"a\"}, {\"b\"}]>]>"}
  x = f32[2,COLS] custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"a\"}, {\"b\"}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{MANUAL}>"}
  low = f32[] constant(0)
  high = f32[] constant(64)
  u = f32[2,COLS] rng(low, high), distribution=rng_uniform
  v = f32[2,COLS] floor(u)
  y = f32[2,COLS] add(v, x)
  f = f32[8,12] custom-call(y), custom_call_target="xla.sdy.LocalToGlobalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.manual_axes="#sdy<manual_axes{MANUAL}>",xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"a\"}, {\"b\"}]>]>"}
  ROOT r = f32[8,12] subtract(f, p), frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{\"a\"}, {\"b\"}]>]>"}
}
)",
      {{"MANUAL", both ? "\\\"a\\\", \\\"b\\\"" : "\\\"a\\\""}, {"COLS", both ? "6" : "12"}});
}

TEST(Rng, EveryDeviceOfAManualRegionDrawsItsOwn) {
  const std::string text = Region("ab");
  const auto p = PartitionText(text, {});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(CountOpcode(**p, Opcode::kConditional), 0);
  EXPECT_EQ(WhyNotEqual(text, {}), "");
}

TEST(Rng, FreeAxesOfARegionAgreeAndManualCoordinatesDoNot) {
  const auto p = PartitionText(Region("a"), {});
  ASSERT_TRUE(p.ok()) << p.status();
  ASSERT_FALSE((*p)->local.collectives.empty());
  for (const CollectiveRecord& r : (*p)->local.collectives) {
    EXPECT_EQ(r.group_size, 2);
    EXPECT_EQ(r.num_groups, 4);
  }
  EXPECT_EQ(CountOpcode(**p, Opcode::kConditional), 1);
}

// What the reference of verify draws is what the devices that draw draw.
TEST(RngReference, DrawsAsTheDeviceThatAShardingNames) {
  EXPECT_EQ(WhyNotEqual(R"(HloModule m, num_partitions=4

ENTRY e {
  low = f32[] constant(0)
  high = f32[] constant(64)
  u = f32[8] rng(low, high), distribution=rng_uniform, sharding={maximal device=2}
  v = f32[8] rng(low, high), distribution=rng_uniform
  w = f32[8] rng(low, high), distribution=rng_normal, sharding={maximal device=2}
  s = u64[2] rng-get-and-update-state(), delta=3, sharding={maximal device=3}
  ROOT t = (f32[8], f32[8], f32[8], u64[2]) tuple(u, v, w, s)
}
)",
                        {}),
            "");
}

TEST(RngReference, DrawsAsTheDeviceThatRunsACallOrALoop) {
  EXPECT_EQ(WhyNotEqual(R"(HloModule m, num_partitions=4

draw {
  a = f32[8] parameter(0)
  low = f32[] constant(0)
  high = f32[] constant(64)
  u = f32[8] rng(low, high), distribution=rng_uniform
  ROOT r = f32[8] add(u, a)
}

body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  n = s32[] add(i, one)
  x = f32[8] get-tuple-element(s), index=1
  y = f32[8] call(x), to_apply=draw
  ROOT t = (s32[], f32[8]) tuple(n, y)
}

condition {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(i, three), direction=LT
}

ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  zero = s32[] constant(0)
  init = (s32[], f32[8]) tuple(zero, x)
  w = (s32[], f32[8]) while(init), condition=condition, body=body, sharding={{maximal device=3}, {maximal device=3}}
  ROOT r = f32[8] get-tuple-element(w), index=1
}
)",
                        {}),
            "");
}

TEST(RngReference, DrawsOutsideOfARegionAsOneDeviceDoes) {
  for (const char* manual : {"a", "ab"}) {
    SCOPED_TRACE(manual);
    EXPECT_EQ(
        WhyNotEqual(absl::StrReplaceAll(Region(manual),
                                        {{"p = f32[8,12] parameter(0)",
                                          "l = f32[] constant(0)\n  h = f32[] constant(64)\n"
                                          "  p = f32[8,12] rng(l, h), distribution=rng_uniform"}}),
                    {}),
        "");
  }
}

TEST(RngReference, DrawsInARegionAsTheDeviceThatStandsThereAlongFreeAxes) {
  for (const char* manual : {"a", "ab"}) {
    SCOPED_TRACE(manual);
    EXPECT_EQ(WhyNotEqual(absl::StrReplaceAll(Region(manual), {{"distribution=rng_uniform",
                                                                "distribution=rng_uniform, "
                                                                "sharding={maximal device=5}"}}),
                          {}),
              "");
  }
}

}  // namespace
}  // namespace shardcall
