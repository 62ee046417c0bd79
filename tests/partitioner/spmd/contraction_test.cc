// SPDX-License-Identifier: Apache-2.0
// Dot with batch, contracting and free dimensions sharded every way, and what
// follows partial sums.
#include <gtest/gtest.h>

#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {{{'A', 8}, {'B', 4}, {'C', 8}},
                                   {{'A', 10}, {'B', 7}, {'C', 3}},
                                   {{'A', 3}, {'B', 5}, {'C', 10}},
                                   {{'A', 1}, {'B', 10}, {'C', 4}}};

TEST(Contraction, MatrixProductUnderEverySharding) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  y = f32[@B,@C] parameter(1)<1:2>
  ROOT r = f32[@A,@C] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}<2:2>
)",
                .sizes = kSizes,
                .max_cases = 1200,
                .no_fallback = true});
}

TEST(Contraction, BatchDimensionsShardedOnEitherSide) {
  VerifyFamily({.text = R"(
  x = f32[@A,2,@B] parameter(0)<0:3>
  y = f32[@A,@B,@C] parameter(1)<1:3>
  ROOT r = f32[@A,2,@C] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}<2:3>
)",
                .sizes = {{{'A', 4}, {'B', 8}, {'C', 3}}, {{'A', 5}, {'B', 3}, {'C', 4}}},
                .max_cases = 500,
                .no_fallback = true});
}

TEST(Contraction, ContractionOfTwoDimensionsInAnotherOrder) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B,3] parameter(0)<0:3>
  y = s32[@B,@A,2] parameter(1)<1:3>
  ROOT r = s32[3,2] dot(x, y), lhs_contracting_dims={0,1}, rhs_contracting_dims={1,0}<2:2>
)",
                .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 5}, {'B', 3}}},
                .max_cases = 400,
                .no_fallback = true});
}

TEST(Contraction, ChainsOfPartialSums) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  w = f32[@B,@C] parameter(1)<1:2>
  v = f32[@C,@B] parameter(2)<2:2>
  h = f32[@A,@C] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[@C,@A] transpose(h), dimensions={1,0}
  n = f32[@C,@A] negate(t)
  ROOT r = f32[@A,@B] dot(n, v), lhs_contracting_dims={0}, rhs_contracting_dims={0}<3:2>
)",
                .sizes = kSizes,
                .max_cases = 500,
                .no_fallback = true});
}

TEST(Contraction, OneProductUsedTwiceInDifferentShardings) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  y = f32[@B,@A] parameter(1)<1:2>
  d = f32[@A,@A] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[@A,@A] add(d, d)<2:2>
  ROOT r = f32[@A,@A] subtract(s, d)<3:2>
)",
                .sizes = kSizes,
                .max_cases = 400,
                .no_fallback = true});
}

TEST(Contraction, VectorsAndOuterProducts) {
  VerifyFamily({.text = R"(
  x = f32[@A] parameter(0)<0:1>
  y = f32[@A] parameter(1)<1:1>
  i = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  o = f32[@A,@A] dot(x, y)<2:2>
  b = f32[@A,@A] broadcast(i), dimensions={}
  ROOT r = f32[@A,@A] add(o, b)
)",
                .sizes = kSizes,
                .max_cases = 300,
                .no_fallback = true});
}

TEST(Contraction, PaddedShardsOfNarrowFloats) {
  VerifyFamily({.text = R"(
  x = bf16[@A,@B] parameter(0)<0:2>
  y = bf16[@B,@C] parameter(1)<1:2>
  ROOT r = f32[@A,@C] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}<2:2>
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

// An embedding that is read as it is and transposed, for the logits, is gathered once.
TEST(Contraction, WeightsThatAreTransposedForOneProductAreGatheredOnce) {
  EXPECT_EQ(BytesMoved(R"(
  x = f32[4096,128] parameter(0), sharding={devices=[8,1]<=[8]}
  w = f32[256,128] parameter(1), sharding={devices=[8,1]<=[8]}
  t = f32[128,256] transpose(w), dimensions={1,0}
  logits = f32[4096,256] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  p = f32[4096,256] tanh(logits)
  ROOT r = f32[4096,128] dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[8,1]<=[8]}
)"),
            256 * 128 * 4 * 7 / 8);
}

}  // namespace
}  // namespace shardcall
