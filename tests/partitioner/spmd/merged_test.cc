// SPDX-License-Identifier: Apache-2.0
// Ops that run on shards and whose results are then brought together: argmax and other reductions
// that select, top-k, and a few rows of a sharded dimension.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {
    {{'A', 8}, {'B', 16}}, {{'A', 5}, {'B', 13}}, {{'A', 3}, {'B', 7}}};

// The first of the largest, NaN before all.
const char kArgmax[] = R"(
argmax {
  x = f32[] parameter(0)
  i = s32[] parameter(1)
  y = f32[] parameter(2)
  j = s32[] parameter(3)
  above = pred[] compare(x, y), direction=GT
  invalid = pred[] compare(x, x), direction=NE
  first = pred[] or(above, invalid)
  equal = pred[] compare(x, y), direction=EQ
  before = pred[] compare(i, j), direction=LT
  tie = pred[] and(equal, before)
  mine = pred[] or(first, tie)
  value = f32[] select(first, x, y)
  place = s32[] select(mine, i, j)
  ROOT t = (f32[], s32[]) tuple(value, place)
}
)";

TEST(Argmax, OfShardedLines) {
  VerifyFamily({.text = absl::StrCat(kArgmax, R"(
ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  i = s32[@A,@B] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[@A], s32[@A]) reduce(x, i, low, zero), dimensions={1}, to_apply=argmax
}
)"),
                .sizes = kSizes,
                .no_fallback = true});
}

TEST(Argmax, OverAllDimensions) {
  VerifyFamily({.text = absl::StrCat(kArgmax, R"(
ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  i = s32[@A,@B] parameter(1)<1:2>
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[], s32[]) reduce(x, i, low, zero), dimensions={0,1}, to_apply=argmax
}
)"),
                .sizes = kSizes,
                .no_fallback = true});
}

TEST(Argmax, SendsTheBestOfEachShard) {
  EXPECT_EQ(BytesMoved(absl::StrCat(kArgmax, R"(
ENTRY main {
  x = f32[64,1024] parameter(0), sharding={devices=[1,8]<=[8]}
  i = s32[64,1024] iota(), iota_dimension=1
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[64], s32[64]) reduce(x, i, low, zero), dimensions={1}, to_apply=argmax
}
)")),
            7 * 64 * (4 + 4));
}

// The place in an array that is sharded along both dimensions, as a vector.
TEST(Argmax, OfAnArrayAsAVector) {
  const auto text = [](const std::string& sharding) {
    return absl::StrCat(kArgmax, R"(
ENTRY main {
  x = f32[@A,@B] parameter(0))",
                        sharding, R"(
  y = f32[@N] reshape(x)
  i = s32[@N] iota(), iota_dimension=0
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[], s32[]) reduce(y, i, low, zero), dimensions={0}, to_apply=argmax
}
)");
  };
  VerifyFamily({.text = text("<0:2>"),
                .sizes = {{{'A', 8}, {'B', 4}, {'N', 32}}, {{'A', 5}, {'B', 3}, {'N', 15}}},
                .no_fallback = true});
  EXPECT_EQ(BytesMoved(absl::StrReplaceAll(text(", sharding={devices=[4,2]<=[8]}"),
                                           {{"@A", "64"}, {"@B", "32"}, {"@N", "2048"}})),
            7 * (4 + 4));
}

// (1 + x) (1 + y) - 1, which no collective knows.
std::string OwnMonoid(const std::string& init) {
  return absl::StrCat(R"(
own {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  p = s32[] multiply(x, y)
  s = s32[] add(x, y)
  ROOT r = s32[] add(s, p)
}

ENTRY main {
  x = s32[@A,@B,@C] parameter(0)<0:3>
  i = s32[] constant()",
                      init, R"()
  ROOT r = s32[@A,@B] reduce(x, i), dimensions={2}, to_apply=own<1:2>
}
)");
}

TEST(OwnMonoid, IsReducedByShards) {
  VerifyFamily({.text = OwnMonoid("0"),
                .sizes = {{{'A', 8}, {'B', 4}, {'C', 16}}, {{'A', 5}, {'B', 3}, {'C', 13}}},
                .max_cases = 150,
                .no_fallback = true});
}

TEST(OwnMonoid, WithAnotherInitialValueStaysWhole) {
  VerifyFamily({.text = OwnMonoid("2"),
                .sizes = {{{'A', 8}, {'B', 4}, {'C', 16}}, {{'A', 5}, {'B', 3}, {'C', 13}}},
                .max_cases = 100});
}

// Each device merges its tile of all shards' results where they are large.
TEST(OwnMonoid, SendsTwiceAResult) {
  const auto sent = [](int64_t a, int64_t b) {
    return BytesMoved(
        absl::StrReplaceAll(OwnMonoid("0"), {{"@A", absl::StrCat(a)},
                                             {"@B", absl::StrCat(b)},
                                             {"@C", "64"},
                                             {"<0:3>", ", sharding={devices=[1,1,8]<=[8]}"},
                                             {"<1:2>", ", sharding={replicated}"}}));
  };
  EXPECT_EQ(sent(32, 16), 2 * 7 * 32 * 16 * 4 / 8);
  EXPECT_EQ(sent(5, 16), 7 * 5 * 16 * 4);            // small: one collective
  EXPECT_EQ(sent(31, 16), 2 * 7 * 31 * 16 * 4 / 8);  // the other dimension has tiles
}

// A sum beside a maximum is reduced by itself, whatever it starts from: that counts once.
TEST(Argmax, AReducerOfTwoKindsIsTakenApart) {
  VerifyFamily({.text = R"(
both {
  x = f32[] parameter(0)
  i = f32[] parameter(1)
  y = f32[] parameter(2)
  j = f32[] parameter(3)
  value = f32[] maximum(x, y)
  sum = f32[] add(i, j)
  ROOT t = (f32[], f32[]) tuple(value, sum)
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  y = f32[@A,@B] parameter(1)<1:2>
  low = f32[] constant(-inf)
  three = f32[] constant(3)
  ROOT r = (f32[@A], f32[@A]) reduce(x, y, low, three), dimensions={1}, to_apply=both
}
)",
                .sizes = kSizes,
                .max_cases = 100});
}

std::string TopK(const std::string& type, const std::string& attributes) {
  return absl::StrCat("\n  x = ", type, "[@A,@B] parameter(0)<0:2>\n  ROOT r = (", type,
                      "[@A,3], s32[@A,3]) topk(x), ", attributes, "\n");
}

TEST(TopK, OfShardedLines) {
  VerifyFamily({.text = TopK("f32", "k=3, largest=true"), .sizes = kSizes, .no_fallback = true});
  VerifyFamily({.text = TopK("s32", "k=3, largest=false"), .sizes = kSizes, .no_fallback = true});
  VerifyFamily({.text = TopK("u8", "k=3, largest=true"), .sizes = kSizes, .no_fallback = true});
}

TEST(TopK, MoreThanAShardHas) {
  VerifyFamily({.text = R"(
  x = f32[@B] parameter(0)<0:1>
  ROOT r = (f32[@B], s32[@B]) topk(x), k=@B, largest=true
)",
                .sizes = kSizes});
}

TEST(TopK, SendsTheBestOfEachShard) {
  EXPECT_EQ(BytesMoved(R"(
  x = f32[4,4096] parameter(0), sharding={devices=[1,8]<=[8]}
  ROOT r = (f32[4,10], s32[4,10]) topk(x), k=10, largest=true
)"),
            7 * 4 * 10 * (4 + 4));
}

TEST(OwnRows, OfADynamicSlice) {
  for (const char* type : {"f32", "s32", "pred", "bf16"}) {
    VerifyFamily({.text = absl::StrCat("\n  x = ", type, R"([@A,@B] parameter(0)<0:2>
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  ROOT r = )",
                                       type,
                                       "[2,3] dynamic-slice(x, i, j), "
                                       "dynamic_slice_sizes={2,3}<1:2>\n"),
                  .sizes = kSizes,
                  .max_cases = 150,
                  .no_fallback = true});
  }
}

TEST(OwnRows, LongerThanAShard) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  i = s32[] parameter(1)
  zero = s32[] constant(0)
  ROOT r = f32[@A,@(B-1)] dynamic-slice(x, zero, i), dynamic_slice_sizes={@A,@(B-1)}<1:2>
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

// The sum of a shard's rows, or zeros, over all shards, where all rows would be 8 x 1 MiB.
TEST(OwnRows, ALayerOfAStackIsSummed) {
  EXPECT_EQ(BytesMoved(R"(
  w = f32[64,512,512] parameter(0), sharding={devices=[8,1,1]<=[8]}
  i = s32[] parameter(1)
  z = s32[] constant(0)
  ROOT y = f32[1,512,512] dynamic-slice(w, i, z, z), dynamic_slice_sizes={1,512,512}, sharding={replicated}
)"),
            2 * 7.0 / 8 * 512 * 512 * 4);
}

TEST(OwnRows, TheLastRowOfASliceIsSummed) {
  EXPECT_EQ(BytesMoved(R"(
  x = f32[64,512] parameter(0), sharding={devices=[8,1]<=[8]}
  ROOT y = f32[1,512] slice(x), slice={[63:64], [0:512]}, sharding={replicated}
)"),
            2 * 7.0 / 8 * 512 * 4);
}

}  // namespace
}  // namespace shardcall
