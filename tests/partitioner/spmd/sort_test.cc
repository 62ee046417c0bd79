// SPDX-License-Identifier: Apache-2.0
// Sort and top-k: lines are sorted on shards of other dimensions, or their shards are merged; batch
// dimensions stay sharded; padding never ranks.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/partitioner/spmd/plan_testing.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {
    {{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 7}}, {{'A', 5}, {'B', 3}}, {{'A', 1}, {'B', 8}}};

TEST(Sort, AlongADimensionThatMayBeSharded) {
  VerifyFamily({.text = R"(
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  ROOT r = f32[@A,@B] sort(x), dimensions={1}, to_apply=less<1:2>
}
)",
                .sizes = kSizes,
                .max_cases = 400});
}

TEST(Sort, KeysCarryValuesStably) {
  VerifyFamily({.text = R"(
less {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT
}

ENTRY main {
  k = s32[@A,@B] parameter(0)<0:2>
  v = f32[@A,@B] parameter(1)<1:2>
  ROOT r = (s32[@A,@B], f32[@A,@B]) sort(k, v), dimensions={0}, is_stable=true, to_apply=less
}
)",
                .sizes = kSizes,
                .max_cases = 400});
}

// Of one line all shards are merged. 6, 8 and 12 of them, of which the last may be padding.
const std::vector<TestMesh> kLineMeshes = {{{2}}, {{6}}, {{4, 2}}, {{3, 4}}};
const std::vector<Sizes> kLines = {{{'A', 96}}, {{'A', 50}}, {{'A', 7}}, {{'A', 1}}};

// Only by their bytes is it known which of two plans of so small a program is taken.
TextOptions MergeAtAnyCost() {
  TextOptions options;
  options.spmd.cost.latency = 1e-15;
  options.spmd.cost.memory_rate = 1e3;
  return options;
}

TEST(Sort, OneLineOfIntegersIsMerged) {
  for (const char* less : {"compare(a, b), direction=LT", "compare(b, a), direction=LT",
                           "compare(a, b), direction=GT"}) {
    VerifyFamily({.text = absl::StrCat(R"(
less {
  a = s8[] parameter(0)
  b = s8[] parameter(1)
  ROOT r = pred[] )",
                                       less, R"(
}

ENTRY main {
  x = s8[@A] parameter(0)<0:1>
  ROOT r = s8[@A] sort(x), dimensions={0}, to_apply=less<1:1>
}
)"),
                  .sizes = kLines,
                  .meshes = kLineMeshes,
                  .options = MergeAtAnyCost()});
  }
}

TEST(Sort, OneLineOfKeysCarriesItsValuesStably) {
  VerifyFamily({.text = R"(
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT
}

ENTRY main {
  k = f32[@A] parameter(0)<0:1>
  v = s32[@A] iota(), iota_dimension=0
  ROOT r = (f32[@A], s32[@A]) sort(k, v), dimensions={0}, is_stable=true, to_apply=less
}
)",
                .sizes = kLines,
                .meshes = kLineMeshes,
                .options = MergeAtAnyCost()});
}

TEST(Sort, LinesThatNoOtherDimensionCanMoveAreMerged) {
  VerifyFamily({.text = R"(
less {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

ENTRY main {
  x = s32[@A,3] parameter(0)<0:2>
  ROOT r = s32[@A,3] sort(x), dimensions={0}, to_apply=less<1:2>
}
)",
                .sizes = kLines,
                .meshes = kLineMeshes,
                .options = MergeAtAnyCost()});
}

// 19 pairs of 8 shards exchange theirs.
TEST(Sort, OneLineOverEightDevicesSendsNineteenThirtySecondsOfIt) {
  EXPECT_EQ(BytesMoved(R"(
less {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

ENTRY main {
  x = s32[1048576] parameter(0), sharding={devices=[8]<=[8]}
  ROOT r = s32[1048576] sort(x), dimensions={0}, to_apply=less, sharding={devices=[8]<=[8]}
}
)"),
            1048576 * 4 / 32 * 19);
}

TEST(TopK, LargestOfEveryRow) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  t = (f32[@A,2], s32[@A,2]) topk(x), k=2, largest=true
  v = f32[@A,2] get-tuple-element(t), index=0
  i = s32[@A,2] get-tuple-element(t), index=1
  w = f32[@A,2] negate(v)<1:2>
  ROOT r = (f32[@A,2], s32[@A,2]) tuple(w, i)
)",
                .sizes = kSizes,
                .max_cases = 300});
}

}  // namespace
}  // namespace shardcall
