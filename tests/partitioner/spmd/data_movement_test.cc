// SPDX-License-Identifier: Apache-2.0
// Broadcast, reshape (split, merge, compound, uneven), transpose, bitcast-like
// changes of shape.
#include <gtest/gtest.h>

#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

TEST(DataMovement, BroadcastIntoShardedNewDimensions) {
  VerifyFamily({.text = R"(
  x = f32[@A] parameter(0)<0:1>
  r0 = f32[@A,@B] broadcast(x), dimensions={0}<1:2>
  r1 = f32[@B,@A] broadcast(x), dimensions={1}<2:2>
  ROOT t = (f32[@A,@B], f32[@B,@A]) tuple(r0, r1)
)",
                .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 3}}, {{'A', 1}, {'B', 7}}},
                .no_fallback = true});
}

TEST(DataMovement, TransposeKeepsOrSwapsAxes) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  ROOT r = f32[@B,@A] transpose(x), dimensions={1,0}<1:2>
)",
                .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 7}}, {{'A', 3}, {'B', 1}}},
                .max_cases = 400,
                .no_fallback = true});
}

TEST(DataMovement, TransposeOfRankThree) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B,2] parameter(0)<0:3>
  ROOT r = s32[2,@A,@B] transpose(x), dimensions={2,0,1}<1:3>
)",
                .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 5}, {'B', 3}}},
                .no_fallback = true});
}

TEST(DataMovement, ReshapeMergesTwoDimensions) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  ROOT r = f32[@(A*B)] reshape(x)<1:1>
)",
                .sizes = {{{'A', 8}, {'B', 4}},
                          {{'A', 6}, {'B', 4}},
                          {{'A', 10}, {'B', 3}},
                          {{'A', 1}, {'B', 7}},
                          {{'A', 5}, {'B', 1}}},
                .max_cases = 500,
                .no_fallback = true});
}

TEST(DataMovement, ReshapeSplitsADimension) {
  VerifyFamily({.text = R"(
  x = f32[@(A*B)] parameter(0)<0:1>
  ROOT r = f32[@A,@B] reshape(x)<1:2>
)",
                .sizes = {{{'A', 8}, {'B', 4}},
                          {{'A', 4}, {'B', 6}},
                          {{'A', 5}, {'B', 2}},
                          {{'A', 2}, {'B', 8}},
                          {{'A', 7}, {'B', 1}}},
                .max_cases = 500,
                .no_fallback = true});
}

TEST(DataMovement, ReshapeRegroupsCompoundDimensions) {
  VerifyFamily({.text = R"(
  x = f32[@(A*B),4] parameter(0)<0:2>
  ROOT r = f32[@A,@(B*4)] reshape(x)<1:2>
)",
                .sizes = {{{'A', 4}, {'B', 2}}, {{'A', 3}, {'B', 5}}, {{'A', 2}, {'B', 4}}},
                .max_cases = 400,
                .no_fallback = true});
}

// Heads that the shards do not divide, as 12 on 8 devices, and back.
TEST(DataMovement, ReshapeIntoUnevenShards) {
  VerifyFamily({.text = R"(
  x = f32[2,@(A*B)] parameter(0)<0:2>
  ROOT r = f32[2,@A,@B] reshape(x)<1:3>
)",
                .sizes = {{{'A', 12}, {'B', 4}}, {{'A', 7}, {'B', 6}}, {{'A', 3}, {'B', 8}}},
                .max_cases = 300,
                .no_fallback = true});
  VerifyFamily({.text = R"(
  x = f32[@(A*2),@B,3] parameter(0)<0:3>
  ROOT r = f32[@B,@(A*2),3] reshape(x)<1:3>
)",
                .sizes = {{{'A', 6}, {'B', 4}}, {{'A', 3}, {'B', 5}}},
                .max_cases = 300});
}

TEST(DataMovement, ReshapeSendsTheElementsThatShardsLack) {
  // Shards of 12 columns become 2 heads of 8, on 6 of the devices. Each gets up to 12 columns from
  // the next device, and three get as many from the second next.
  EXPECT_EQ(BytesMoved(R"(
  x = f32[5,96] parameter(0), sharding={devices=[1,8]<=[8]}
  ROOT r = f32[5,12,8] reshape(x), sharding={devices=[1,8,1]<=[8]}
)"),
            (6 + 3) * 12.0 / 8 * 5 * 4);
}

TEST(DataMovement, ReshapeAddsAndDropsDimensionsOfSizeOne) {
  VerifyFamily({.text = R"(
  x = f32[@A,1,@B] parameter(0)<0:3>
  y = f32[@A,@B] reshape(x)<1:2>
  ROOT r = f32[1,@A,@B] reshape(y)<2:3>
)",
                .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 5}, {'B', 3}}}});
}

TEST(DataMovement, ReshapeOfThreeDimensionsIntoTwo) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B,3] parameter(0)<0:3>
  ROOT r = s32[@A,@(B*3)] reshape(x)<1:2>
)",
                .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 2}, {'B', 2}}, {{'A', 5}, {'B', 4}}},
                .max_cases = 300,
                .no_fallback = true});
}

TEST(DataMovement, BitcastConvertAndReducePrecisionKeepShards) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  i = s32[@A,@B] bitcast-convert(x)
  p = f32[@A,@B] reduce-precision(x), exponent_bits=8, mantissa_bits=7
  ROOT t = (s32[@A,@B], f32[@A,@B]) tuple(i, p)
)",
                .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 5}, {'B', 3}}},
                .max_cases = 100,
                .no_fallback = true});
}

TEST(DataMovement, CopiesPass) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  c = f32[@A,@B] copy(x)<1:2>
  ROOT r = f32[@A,@B] copy(c)<2:2>
)",
                .sizes = {{{'A', 10}, {'B', 3}}},
                .max_cases = 100,
                .no_fallback = true});
}

}  // namespace
}  // namespace shardcall
