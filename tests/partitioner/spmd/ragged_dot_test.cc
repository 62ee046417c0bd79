// SPDX-License-Identifier: Apache-2.0
// ragged-dot and scaled-dot on shards of each of their dimensions, against one device.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/partitioner/spmd/plan_testing.h"

namespace shardcall {
namespace {

// Group sizes are small integers, negative ones, too, and may be more than there are rows.
const std::vector<Sizes> kSizes = {
    {{'A', 8}, {'G', 4}}, {{'A', 10}, {'G', 3}}, {{'A', 24}, {'G', 8}}, {{'A', 1}, {'G', 5}}};

TEST(RaggedDot, ShardsOfRowsAndOfGroups) {
  VerifyFamily({.text = R"(
  x = s32[@A,6] parameter(0)<0:2>
  w = s32[@G,6,4] parameter(1)<1:3>
  n = s32[@G] parameter(2)<2:1>
  ROOT r = s32[@A,4] ragged-dot(x, w, n), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}<3:2>
)",
                .sizes = kSizes,
                .max_cases = 300});
}

TEST(RaggedDot, ShardsOfBatchesWithAListOfSizesEach) {
  VerifyFamily({.text = R"(
  x = s32[4,3,@A,2] parameter(0)<0:4>
  w = s32[4,2,@G,5] parameter(1)<1:4>
  n = s32[4,3,@G] parameter(2)<2:3>
  ROOT r = s32[4,3,@A,5] ragged-dot(x, w, n), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={3}, rhs_contracting_dims={1}, lhs_ragged_dims={2}, rhs_group_dims={2}<3:4>
)",
                .sizes = kSizes,
                .max_cases = 250});
}

TEST(RaggedDot, ShardsOfTheContractedDimensionThatIsRagged) {
  VerifyFamily({.text = R"(
  x = s32[6,@A] parameter(0)<0:2>
  y = s32[@A,4] parameter(1)<1:2>
  n = s32[@G] parameter(2)<2:1>
  ROOT r = s32[@G,6,4] ragged-dot(x, y, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}<3:3>
)",
                .sizes = kSizes,
                .max_cases = 250});
}

TEST(RaggedDot, SizesOfAnyIntegerType) {
  for (const char* type : {"s8", "u32", "s64"}) {
    VerifyFamily({.text = absl::StrCat(R"(
  x = s32[@A,6] parameter(0)<0:2>
  w = s32[@G,6,4] parameter(1)<1:3>
  n = )",
                                       type, R"([@G] parameter(2)
  ROOT r = s32[@A,4] ragged-dot(x, w, n), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
)"),
                  .sizes = kSizes,
                  .max_cases = 60});
  }
}

TEST(RaggedDot, RowsOfOtherGroupsDoNotCountWhateverTheyHold) {
  VerifyFamily({.text = R"(
  i = f32[@A,1] parameter(0)
  zero = f32[] constant(0)
  zeros = f32[@A,1] broadcast(zero), dimensions={}
  x = f32[@A,1] divide(i, zeros)<0:2>
  w = f32[@G,1,4] parameter(1)<1:3>
  n = s32[@G] parameter(2)
  y = f32[@A,4] ragged-dot(x, w, n), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}<2:2>
  ROOT r = pred[@A,4] is-finite(y)
)",
                .sizes = kSizes,
                .max_cases = 100});
}

std::string Ragged(absl::string_view x, absl::string_view w, absl::string_view r) {
  return absl::StrCat("  x = f32[1024,512] parameter(0), sharding=", x,
                      "\n  w = f32[8,512,128] parameter(1), sharding=", w,
                      "\n  n = s32[8] parameter(2), sharding={replicated}\n"
                      "  ROOT r = f32[1024,128] ragged-dot(x, w, n), lhs_contracting_dims={1}, "
                      "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}, "
                      "sharding=",
                      r, "\n");
}

TEST(RaggedDot, ShardsOfRowsSendNothing) {
  EXPECT_EQ(BytesMoved(Ragged("{devices=[8,1]<=[8]}", "{replicated}", "{devices=[8,1]<=[8]}")), 0);
}

TEST(RaggedDot, ShardsOfGroupsAddUpTheirRows) {
  EXPECT_EQ(BytesMoved(Ragged("{replicated}", "{devices=[8,1,1]<=[8]}", "{devices=[8,1]<=[8]}")),
            1024 * 128 * 4 / 8 * 7);
}

TEST(ScaledDot, ShardsOfWholeBlocksAddUp) {
  for (const char* scales : {"f32[@M,@(K/4)]|f32[@(K/4),4]", "f32[@M,@(K/2)]|f32[@(K/4),4]",
                             "f32[1,1]|f32[@(K/2),4]", "f32[@M,1]|f32[1,4]"}) {
    const std::vector<std::string> of = absl::StrSplit(scales, '|');
    VerifyFamily({.text = absl::StrCat(R"(
  x = f32[@M,@K] parameter(0)<0:2>
  y = f32[@K,4] parameter(1)<1:2>
  s = )",
                                       of[0], " parameter(2)\n  t = ", of[1], R"( parameter(3)
  ROOT r = f32[@M,4] scaled-dot(x, y, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}<2:2>
)"),
                  .sizes = {{{'M', 4}, {'K', 32}}, {{'M', 5}, {'K', 12}}, {{'M', 3}, {'K', 24}}},
                  .max_cases = 100});
  }
}

TEST(ScaledDot, BlocksThatAreShardedWithTheirScalesAreOneReduceScatter) {
  EXPECT_EQ(BytesMoved(R"(
  x = f8e4m3fn[512,4096] parameter(0), sharding={devices=[1,8]<=[8]}
  y = f8e4m3fn[4096,512] parameter(1), sharding={devices=[8,1]<=[8]}
  s = f8e8m0fnu[512,128] parameter(2), sharding={devices=[1,8]<=[8]}
  t = f8e8m0fnu[128,512] parameter(3), sharding={devices=[8,1]<=[8]}
  ROOT r = f32[512,512] scaled-dot(x, y, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[8,1]<=[8]}
)"),
            512 * 512 * 4 / 8 * 7);
}

}  // namespace
}  // namespace shardcall
