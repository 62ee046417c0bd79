// SPDX-License-Identifier: Apache-2.0
// Dynamic-update-slice into sharded dimensions.
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "tests/partitioner/spmd/plan_testing.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {
    {{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 7}}, {{'A', 5}, {'B', 3}}, {{'A', 7}, {'B', 8}}};

TEST(DynamicUpdateSlice, UpdatesThatAreSmallerThanAShardAndLarger) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  u = f32[3,@B] parameter(1)<1:2>
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  ROOT r = f32[@A,@B] dynamic-update-slice(x, u, i, zero)<2:2>
)",
                .sizes = kSizes,
                .max_cases = 500});
}

TEST(DynamicUpdateSlice, InTwoDimensions) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  u = f32[2,2] parameter(1)<1:2>
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT r = f32[@A,@B] dynamic-update-slice(x, u, i, j)<2:2>
)",
                .sizes = kSizes,
                .max_cases = 300});
}

// Starts before the first row and after the last one, also in types that hold fewer numbers than
// the array has rows.
TEST(DynamicUpdateSlice, StartsOutOfRangeAreClampedOnce) {
  for (const char* type : {"s32", "s8", "u8", "u32", "s64"}) {
    SCOPED_TRACE(type);
    const std::string text = absl::StrReplaceAll(R"(
  x = f32[@A,@B] parameter(0)<0:2>
  u = f32[2,@B] parameter(1)
  i = TYPE[] parameter(2)
  five = TYPE[] constant(5)
  four = TYPE[] constant(4)
  low = TYPE[] subtract(i, five)
  start = TYPE[] multiply(low, four)
  ROOT r = f32[@A,@B] dynamic-update-slice(x, u, start, i)<1:2>
)",
                                                 {{"TYPE", type}});
    VerifyFamily({.text = text,
                  .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 7}}, {{'A', 300}, {'B', 3}}},
                  .max_cases = 90,
                  .no_fallback = true});
  }
}

TEST(DynamicUpdateSlice, OneRow) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  u = s32[1,@B] parameter(1)
  i = s32[] parameter(2)
  ROOT r = s32[@A,@B] dynamic-update-slice(x, u, i, i)<1:2>
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

TEST(DynamicUpdateSlice, OfNoRowsChangesNothing) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  u = s32[0,2] parameter(1)
  i = s32[] parameter(2)
  ROOT r = s32[@A,@B] dynamic-update-slice(x, u, i, i)<1:2>
)",
                .sizes = kSizes,
                .max_cases = 60,
                .no_fallback = true});
}

// What each device updates is in its shard: nothing is sent, and nothing has the whole size.
TEST(DynamicUpdateSlice, SendsNothingWhereTheUpdateIsAtHand) {
  for (const char* rows : {"1", "5", "20"}) {
    SCOPED_TRACE(rows);
    const auto p = Done(absl::StrReplaceAll(R"(
  x = f32[64,16] parameter(0), sharding={devices=[8,1]<=[8]}
  u = f32[ROWS,16] parameter(1), sharding={replicated}
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  ROOT r = f32[64,16] dynamic-update-slice(x, u, i, zero), sharding={devices=[8,1]<=[8]}
)",
                                            {{"ROWS", rows}}),
                        8);
    EXPECT_TRUE(p->local.collectives.empty()) << LocalText(*p);
    for (int k = 0; k < p->local.module.num_instructions(); ++k) {
      const Shape* shape = p->local.module.instr(InstrId(k)).shape;
      if (shape->IsArray() && shape->rank() == 2) EXPECT_LT(shape->dim(0), 64) << LocalText(*p);
    }
  }
}

// The shards of the update are gathered, not those of the array.
TEST(DynamicUpdateSlice, GathersTheUpdateAlone) {
  const auto p = Done(R"(
  x = f32[64,16] parameter(0), sharding={devices=[8,1]<=[8]}
  u = f32[8,16] parameter(1), sharding={devices=[8,1]<=[8]}
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  ROOT r = f32[64,16] dynamic-update-slice(x, u, i, zero), sharding={devices=[8,1]<=[8]}
)",
                      8);
  ASSERT_EQ(p->local.collectives.size(), 1u) << LocalText(*p);
  EXPECT_EQ(p->local.collectives[0].bytes_moved, 4 * 8 * 16 / 8 * 7);
}

}  // namespace
}  // namespace shardcall
