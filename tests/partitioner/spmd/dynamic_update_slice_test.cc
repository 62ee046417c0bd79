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

// Starts that are known: the update's rows are exchanged, if it is sharded.
TEST(DynamicUpdateSlice, AtConstantPlaces) {
  for (const char* start : {"0", "1", "3", "9"}) {
    VerifyFamily({.text = absl::StrReplaceAll(R"(
  x = f32[@(A+3),@B] parameter(0)<0:2>
  u = f32[@A,@B] parameter(1)<1:2>
  i = s32[] constant(START)
  zero = s32[] constant(0)
  ROOT r = f32[@(A+3),@B] dynamic-update-slice(x, u, i, zero)<2:2>
)",
                                              {{"START", start}}),
                  .sizes = kSizes,
                  .max_cases = 80});
  }
}

TEST(DynamicUpdateSlice, AtConstantPlacesInTwoDimensions) {
  VerifyFamily({.text = R"(
  x = f32[@(A+2),@(B+1)] parameter(0)<0:2>
  u = f32[@A,@B] parameter(1)<1:2>
  i = s32[] constant(1)
  ROOT r = f32[@(A+2),@(B+1)] dynamic-update-slice(x, u, i, i)<2:2>
)",
                .sizes = kSizes,
                .max_cases = 200});
}

// x.at[1:-1, 1:-1].set(u) and .add(u) of JAX.
TEST(DynamicUpdateSlice, AScatterOfOneWindowAtAConstantPlaceIsOne) {
  for (const char* root : {"add(a, b)", "copy(b)"}) {
    VerifyFamily({.text = absl::StrReplaceAll(R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] ROOT_OP
}

ENTRY main {
  x = f32[@(A+2),@(B+2)] parameter(0)<0:2>
  u = f32[@A,@B] parameter(1)<1:2>
  i = s32[2] constant({1, 1})
  ROOT r = f32[@(A+2),@(B+2)] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=f<2:2>
}
)",
                                              {{"ROOT_OP", root}}),
                  .sizes = kSizes,
                  .max_cases = 120});
  }
}

// A row from the shard before and one from the shard behind for the slices; for the update, whose
// 1,022 rows are in shards of 128, nothing lies further from its place than one row.
TEST(DynamicUpdateSlice, AStepOfAStencilSendsRows) {
  EXPECT_LE(BytesMoved(R"(
second {
  p = f32[] parameter(0)
  ROOT q = f32[] parameter(1)
}

ENTRY main {
  x = f32[1024,1024] parameter(0), sharding={devices=[8,1]<=[8]}
  up = f32[1022,1022] slice(x), slice={[0:1022], [1:1023]}
  down = f32[1022,1022] slice(x), slice={[2:1024], [1:1023]}
  left = f32[1022,1022] slice(x), slice={[1:1023], [0:1022]}
  right = f32[1022,1022] slice(x), slice={[1:1023], [2:1024]}
  a = f32[1022,1022] add(up, down)
  b = f32[1022,1022] add(left, right)
  u = f32[1022,1022] add(a, b)
  i = s32[2] constant({1, 1})
  ROOT r = f32[1024,1024] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=second, sharding={devices=[8,1]<=[8]}
}
)"),
            4 * 1024 * 4);
}

}  // namespace
}  // namespace shardcall
