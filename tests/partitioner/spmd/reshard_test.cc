// SPDX-License-Identifier: Apache-2.0
// The emitted code of every reshard moves the value right: pairs of shardings
// crossed with even and uneven sizes, and partial sums into every sharding.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

std::vector<Sizes> AllSizes() {
  std::vector<Sizes> out;
  for (int64_t a : {8, 10, 7, 3, 1}) {
    for (int64_t b : {8, 10, 7, 3, 1}) out.push_back({{'A', a}, {'B', b}});
  }
  return out;
}

constexpr char kPair[] = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  y = s32[@A,@B] custom-call(x), custom_call_target="Sharding"<1:2>
  ROOT r = s32[@A,@B] custom-call(y), custom_call_target="Sharding"<2:2>
)";

TEST(Reshard, EveryPairOfShardingsOverTwoAxes) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  ROOT r = s32[@A,@B] custom-call(x), custom_call_target="Sharding"<1:2>
)",
                .sizes = AllSizes(),
                .meshes = {{{2, 2}}},
                .max_cases = 4000,
                .no_fallback = true});
}

TEST(Reshard, AxesOfDifferentSizes) {
  VerifyFamily({.text = kPair,
                .sizes = AllSizes(),
                .meshes = {{{4, 2}}, {{3, 2}}, {{2, 3}}},
                .max_cases = 700,
                .no_fallback = true});
}

TEST(Reshard, NothingIsSentOfAnEmptyArray) {
  for (const char* to : {"{replicated}", "{devices=[1,4]<=[4]}"}) {
    const std::string text = std::string(R"(HloModule m, num_partitions=4
ENTRY main {
  x = f32[0,8] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT r = f32[0,8] custom-call(x), custom_call_target="Sharding", sharding=)") +
                             to + "\n}\n";
    const auto program = PartitionText(text, {});
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_TRUE((*program)->local.collectives.empty()) << LocalText(**program);
    EXPECT_EQ(WhyNotEqual(text, {}), "");
  }
}

TEST(Reshard, ThreeAxes) {
  VerifyFamily({.text = kPair,
                .sizes = AllSizes(),
                .meshes = {{{2, 2, 2}}},
                .max_cases = 500,
                .no_fallback = true});
}

TEST(Reshard, HalvesOfAnAxis) {
  // [2,..] on a mesh of one axis of 8 takes a part of it; so does its minor half.
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0), sharding={devices=[2,4]<=[8]}
  y = s32[@A,@B] custom-call(x), custom_call_target="Sharding", sharding={devices=[4,2]<=[8]}
  z = s32[@A,@B] custom-call(y), custom_call_target="Sharding", sharding={devices=[2,2,2]<=[2,2,2]T(2,1,0) last_tile_dim_replicate}
  ROOT r = s32[@A,@B] custom-call(z), custom_call_target="Sharding", sharding={devices=[1,8]<=[8]}
)",
                .sizes = AllSizes(),
                .meshes = {{{8}}}});
}

TEST(Reshard, BetweenDeviceOrders) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0), sharding={devices=[2,2]0,1,3,2}
  y = s32[@A,@B] custom-call(x), custom_call_target="Sharding", sharding={devices=[4,1]<=[4]}
  z = s32[@A,@B] custom-call(y), custom_call_target="Sharding", sharding={devices=[1,4]3,1,0,2}
  ROOT r = s32[@A,@B] add(z, x), sharding={devices=[2,2]0,1,3,2}
)",
                .sizes = AllSizes(),
                .meshes = {{{4}}}});
}

TEST(Reshard, MeshesThatDoNotRefine) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0), sharding={devices=[2,3]<=[6]}
  y = s32[@A,@B] custom-call(x), custom_call_target="Sharding", sharding={devices=[3,2]<=[6]}
  z = s32[@A,@B] custom-call(y), custom_call_target="Sharding", sharding={devices=[2,3]<=[2,3]T(1,0)}
  ROOT r = s32[@A,@B] add(z, x), sharding={devices=[6,1]<=[6]}
)",
                .sizes = AllSizes(),
                .meshes = {{{6}}}});
}

TEST(Reshard, PartialSumsIntoEverySharding) {
  VerifyFamily({.text = R"(
  x = s32[@A,12] parameter(0)<0:2>
  y = s32[12,@B] parameter(1)<1:2>
  d = s32[@A,@B] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}<2:2>
  ROOT r = s32[@A,@B] custom-call(d), custom_call_target="Sharding"<3:2>
)",
                .sizes = AllSizes(),
                .meshes = {{{2, 2}}, {{3, 2}}},
                .max_cases = 700,
                .no_fallback = true});
}

TEST(Reshard, ShardsBecomePartsOfASumWithoutACollective) {
  for (const auto& [from, part] : std::vector<std::pair<std::string, std::string>>{
           {"devices=[2,2]<=[4]", "devices=[2,1,2]<=[4] last_tile_dims={unreduced}"},
           {"devices=[2,2]<=[4]", "devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={unreduced}"},
           {"devices=[2,2]<=[4]", "devices=[1,1,4]<=[4] last_tile_dims={unreduced}"},
           {"devices=[4,1]<=[4]", "devices=[1,1,4]<=[4] last_tile_dims={unreduced}"}}) {
    SCOPED_TRACE(part);
    const std::string text = absl::StrReplaceAll(R"(
  x = s32[@A,@B] parameter(0), sharding={FROM}
  y = s32[@A,@B] add(x, x), sharding={FROM}
  ROOT r = s32[@A,@B] custom-call(y), custom_call_target="Sharding", sharding={PART}
)",
                                                 {{"FROM", from}, {"PART", part}});
    VerifyFamily({.text = text, .sizes = AllSizes(), .meshes = {{{4}}}, .no_fallback = true});
    const auto p =
        PartitionText(absl::StrCat("HloModule m, num_partitions=4\nENTRY e {",
                                   absl::StrReplaceAll(text, {{"@A", "10"}, {"@B", "12"}}), "}\n"),
                      {});
    ASSERT_TRUE(p.ok()) << p.status();
    EXPECT_TRUE((*p)->local.collectives.empty()) << LocalText(**p);
  }
}

// The parts of a maximum are reduced before the value becomes parts of a sum.
TEST(Reshard, PartsOfAMaximumBecomePartsOfASum) {
  for (const char* part : {"devices=[1,2,2]<=[4] last_tile_dims={unreduced, replicated}",
                           "devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={unreduced, replicated}",
                           "devices=[1,4]<=[4] last_tile_dims={unreduced}"}) {
    SCOPED_TRACE(part);
    VerifyFamily({.text = absl::StrCat(R"(
f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] maximum(a, b)
}

ENTRY main {
  x = s32[@A,@B] parameter(0), sharding={devices=[2,2]<=[4]}
  least = s32[] constant(-100)
  y = s32[@B] reduce(x, least), dimensions={0}, to_apply=f
  ROOT r = s32[@B] custom-call(y), custom_call_target="Sharding", sharding={)",
                                       part, "}\n}\n"),
                  .sizes = AllSizes(),
                  .meshes = {{{4}}},
                  .no_fallback = true});
  }
}

TEST(Reshard, PartialMaximumAndProduct) {
  for (const char* op : {"maximum", "multiply"}) {
    SCOPED_TRACE(op);
    VerifyFamily({.text = std::string(R"(
f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] )") + op +
                          R"((a, b)
}

ENTRY main {
  x = s32[@A,4,@B] parameter(0)<0:3>
  one = s32[] constant(1)
  ROOT r = s32[@A,@B] reduce(x, one), dimensions={1}, to_apply=f<1:2>
}
)",
                  .sizes = AllSizes(),
                  .meshes = {{{2, 2}}},
                  .max_cases = 500,
                  .no_fallback = true});
  }
}

TEST(Reshard, ValuesWantedInSeveralShardings) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  a = s32[@A,@B] custom-call(x), custom_call_target="Sharding"<1:2>
  b = s32[@A,@B] custom-call(x), custom_call_target="Sharding"<2:2>
  c = s32[@A,@B] add(a, x)
  ROOT r = (s32[@A,@B], s32[@A,@B], s32[@A,@B]) tuple(a, b, c)
)",
                .sizes = AllSizes(),
                .meshes = {{{2, 2}}, {{4, 2}}},
                .max_cases = 500,
                .no_fallback = true});
}

// From 4 shards along one axis to 2 along another: half of the devices get another quarter, such
// that each half has both of its quarters along one axis, and gathers them.
TEST(Reshard, IsPermutedBeforeItIsGathered) {
  EXPECT_EQ(BytesMoved(R"(
  x = f32[64,10] parameter(0), sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  ROOT r = f32[64,10] copy(x), sharding={devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}
)"),
            640 / 2 + 640);
}

}  // namespace
}  // namespace shardcall
