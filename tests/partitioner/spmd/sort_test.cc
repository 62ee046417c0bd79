// SPDX-License-Identifier: Apache-2.0
// Sort and top-k: lines are sorted on shards of other dimensions, or their shards are merged; batch
// dimensions stay sharded; padding never ranks.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
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

// The first and the last rows of lines, some of them of several operands. Where more is read, all
// is sorted.
std::vector<Sizes> SizesOfTaken(absl::string_view taken) {
  std::vector<Sizes> sizes = {{{'A', 96}}, {{'A', 50}}, {{'A', 13}}};
  const int rows = absl::StrContains(taken, "5]") ? 2 : absl::StrContains(taken, "A-1") ? 1 : 3;
  for (Sizes& s : sizes) s['N'] = rows;
  return sizes;
}

TEST(Sort, OnlyItsEndsAreRead) {
  for (const char* taken : {"{[0:3]}", "{[0:6:5]}", "{[@(A-3):@A]}", "{[@(A-1):@A]}"}) {
    VerifyFamily({.text = absl::StrCat(R"(
less {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

more {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT
}

ENTRY main {
  x = s32[@A] parameter(0)<0:1>
  k = f32[@A] parameter(1)<1:1>
  i = s32[@A] iota(), iota_dimension=0
  s = s32[@A] sort(x), dimensions={0}, to_apply=less
  t = (f32[@A], s32[@A]) sort(k, i), dimensions={0}, is_stable=true, to_apply=more
  v = f32[@A] get-tuple-element(t), index=0
  w = s32[@A] get-tuple-element(t), index=1
  a = s32[@N] slice(s), slice=)",
                                       taken, R"(
  b = f32[@N] slice(v), slice=)",
                                       taken, R"(
  c = s32[@N] slice(w), slice=)",
                                       taken, R"(
  ROOT r = (s32[@N], f32[@N], s32[@N]) tuple(a, b, c)
}
)"),
                  .sizes = SizesOfTaken(taken),
                  .meshes = kLineMeshes,
                  .options = MergeAtAnyCost()});
  }
}

// Of k rows each shard gives k, of the keys and of the values, which are the places of equal keys.
TEST(Sort, OnlyEndsAreSent) {
  const auto best = [](absl::string_view rows, int of_values) {
    return absl::StrCat(R"(
more {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT
}

ENTRY main {
  k = f32[16,65536] parameter(0), sharding={devices=[1,8]<=[8]}
  i = s32[16,65536] iota(), iota_dimension=1
  t = (f32[16,65536], s32[16,65536]) sort(k, i), dimensions={1}, is_stable=true, to_apply=more
  v = f32[16,65536] get-tuple-element(t), index=0
  w = s32[16,65536] get-tuple-element(t), index=1
  a = f32[16,4] slice(v), slice={[0:16], )",
                        rows, R"(}
  b = s32[16,)",
                        of_values, R"(] slice(w), slice={[0:16], [0:)", of_values, R"(]}
  ROOT r = (f32[16,4], s32[16,)",
                        of_values, R"(]) tuple(a, b), sharding={{replicated}, {replicated}}
}
)");
  };
  const double row = 7 * 16 * (4 + 4);
  EXPECT_EQ(BytesMoved(best("[0:4]", 4)), 4 * row);
  EXPECT_EQ(BytesMoved(best("[0:4]", 8)), 8 * row);
  EXPECT_EQ(BytesMoved(best("[0:7:2]", 3)), 7 * row);
  // From both ends, and much.
  EXPECT_GT(BytesMoved(best("[65532:65536]", 4)), 500 * row);
  EXPECT_GT(BytesMoved(best("[0:4]", 40000)), 500 * row);
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
