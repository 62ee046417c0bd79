// SPDX-License-Identifier: Apache-2.0
// Ops without a handler of their own are gathered where they must be and stay
// right; odd annotations and empty arrays.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {
    {{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 6}}, {{'A', 3}, {'B', 5}}};

TEST(Convolution, BatchFeaturesAndSpace) {
  VerifyFamily({.text = R"(
  x = f32[@B,@A,4] parameter(0)<0:3>
  k = f32[3,4,6] parameter(1)<1:3>
  ROOT r = f32[@B,@A,6] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f<2:3>
)",
                .sizes = kSizes,
                .max_cases = 300});
}

TEST(Convolution, GroupsOfFeatures) {
  VerifyFamily({.text = R"(
  x = f32[@A,5,4] parameter(0)<0:3>
  k = f32[3,2,6] parameter(1)<1:3>
  ROOT r = f32[@A,3,6] convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=2<2:3>
)",
                .sizes = kSizes,
                .max_cases = 200});
}

TEST(Map, AppliesItsComputationToShards) {
  VerifyFamily({.text = R"(
f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  m = s32[] multiply(a, b)
  ROOT r = s32[] subtract(m, a)
}

ENTRY main {
  x = s32[@A,@B] parameter(0)<0:2>
  y = s32[@A,@B] parameter(1)<1:2>
  ROOT r = s32[@A,@B] map(x, y), dimensions={0,1}, to_apply=f<2:2>
}
)",
                .sizes = kSizes,
                .max_cases = 150,
                .no_fallback = true});
}

TEST(ReduceWindow, InBothDimensionsWithPaddingAndDilation) {
  VerifyFamily({.text = R"(
f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b)
}

ENTRY main {
  x = s32[@A,@B] parameter(0)<0:2>
  zero = s32[] constant(0)
  ROOT r = s32[@A,@B] reduce-window(x, zero), window={size=3x2 pad=1_1x0_1}, to_apply=f<1:2>
}
)",
                .sizes = kSizes,
                .max_cases = 200});
}

TEST(SelectAndScatter, RoutesToTheLargest) {
  VerifyFamily({.text = R"(
ge {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE
}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[@A,@(B*2)] parameter(0)<0:2>
  s = f32[@A,@B] parameter(1)<1:2>
  zero = f32[] constant(0)
  ROOT r = f32[@A,@(B*2)] select-and-scatter(x, s, zero), window={size=1x2 stride=1x2}, select=ge, scatter=add<2:2>
}
)",
                .sizes = kSizes,
                .max_cases = 200});
}

TEST(LinearAlgebra, SolvesStayRightUnderAnySharding) {
  VerifyFamily({.text = R"(
  p = f32[@A,4,4] parameter(0)<0:3>
  b = f32[@A,4,2] parameter(1)<1:3>
  i = s32[4,4] iota(), iota_dimension=0
  j = s32[4,4] iota(), iota_dimension=1
  e = pred[4,4] compare(i, j), direction=EQ
  d = pred[@A,4,4] broadcast(e), dimensions={1,2}
  nine = f32[] constant(9)
  nines = f32[@A,4,4] broadcast(nine), dimensions={}
  a = f32[@A,4,4] select(d, nines, p)
  ROOT r = f32[@A,4,2] triangular-solve(a, b), left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE<2:3>
)",
                .sizes = kSizes,
                .max_cases = 150});
}

TEST(Random, BitsAreThoseOfOneDevice) {
  VerifyFamily({.text = R"(
  s = u64[2] parameter(0)<0:1>
  g = (u64[2], u32[@A,@B]) rng-bit-generator(s), algorithm=rng_three_fry
  b = u32[@A,@B] get-tuple-element(g), index=1
  ROOT r = u32[@A,@B] not(b)<1:2>
)",
                .sizes = kSizes,
                .max_cases = 100});
}

TEST(BatchNorm, NormalisesOverShards) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  g = f32[@B] parameter(1)<1:1>
  o = f32[@B] parameter(2)
  t = (f32[@A,@B], f32[@B], f32[@B]) batch-norm-training(x, g, o), epsilon=1, feature_index=1
  y = f32[@A,@B] get-tuple-element(t), index=0
  ROOT r = f32[@A,@B] negate(y)<2:2>
)",
                .sizes = kSizes,
                .max_cases = 150});
}

TEST(BatchNorm, AddsUpGradientsOverShards) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  s = f32[@B] parameter(1)
  m = f32[@B] parameter(2)
  v = f32[@B] parameter(3)
  w = f32[@B] multiply(v, v)
  g = f32[@A,@B] parameter(4)<1:2>
  ROOT t = (f32[@A,@B], f32[@B], f32[@B]) batch-norm-grad(x, s, m, w, g), epsilon=1, feature_index=1
)",
                .sizes = kSizes,
                .max_cases = 150,
                .no_fallback = true});
}

// Two sums of a number for each feature, in place of the batch.
TEST(BatchNorm, SendsSumsOfABatch) {
  EXPECT_EQ(BytesMoved(R"(
  x = f32[1024,64] parameter(0), sharding={devices=[8,1]<=[8]}
  s = f32[64] parameter(1)
  o = f32[64] parameter(2)
  t = (f32[1024,64], f32[64], f32[64]) batch-norm-training(x, s, o), epsilon=1, feature_index=1
  y = f32[1024,64] get-tuple-element(t), index=0
  ROOT r = f32[1024,64] negate(y), sharding={devices=[8,1]<=[8]}
)"),
            2 * 2 * 7.0 / 8 * 64 * 4);
}

TEST(EmptyArrays, HaveShardsOfNothing) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  y = f32[@B,3] parameter(1)<1:2>
  d = f32[@A,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}<2:2>
  one = f32[] constant(1)
  s = f32[@B] reduce(x, one), dimensions={0}, to_apply=f
  n = f32[@A,@B] negate(x)
  ROOT t = (f32[@A,3], f32[@B], f32[@A,@B]) tuple(d, s, n)
}
)",
                .sizes = {{{'A', 0}, {'B', 4}}, {{'A', 5}, {'B', 0}}, {{'A', 0}, {'B', 0}}},
                .max_cases = 200,
                .no_fallback = true});
}

TEST(EmptyArrays, AreSlicedPaddedAndJoined) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  y = f32[3,@B] parameter(1)<1:2>
  v = f32[] constant(7)
  p = f32[@(A+5),@B] pad(x, v), padding=2_3x0_0
  c = f32[@(A+3),@B] concatenate(x, y), dimensions={0}<2:2>
  s = f32[0,@B] slice(y), slice={[1:1], [0:@B]}
  r = f32[@A,@B] reverse(x), dimensions={0,1}
  m = f32[@(A*B)] reshape(x)
  ROOT t = (f32[@(A+5),@B], f32[@(A+3),@B], f32[0,@B], f32[@A,@B], f32[@(A*B)]) tuple(p, c, s, r, m)
)",
                .sizes = {{{'A', 0}, {'B', 4}}, {{'A', 5}, {'B', 0}}, {{'A', 0}, {'B', 0}}},
                .max_cases = 200});
}

TEST(OddAnnotations, MaximalOldListsAndTuples) {
  for (const char* sharding : {"{maximal device=1}", "{devices=[2,2]0,2,1,3}",
                               "{devices=[2,1,2]3,1,2,0 last_tile_dim_replicate}",
                               "{devices=[1,2,2]<=[4] last_tile_dims={replicated}}", "{unknown}",
                               "{replicated}", "{devices=[4,1]3,2,1,0}"}) {
    SCOPED_TRACE(sharding);
    const std::string text = absl::StrCat(R"(HloModule m, num_partitions=4

ENTRY main {
  x = f32[5,6] parameter(0), sharding={devices=[4,1]<=[4]}
  y = f32[5,6] parameter(1), sharding=)",
                                          sharding, R"(
  s = f32[5,6] add(x, y)
  c = f32[5,6] custom-call(s), custom_call_target="Sharding", sharding=)",
                                          sharding, R"(
  t = f32[6,5] transpose(c), dimensions={1,0}
  ROOT r = (f32[6,5], f32[5,6]) tuple(t, x), sharding={{devices=[2,2]<=[4]}, )",
                                          sharding, R"(}
}
)");
    EXPECT_EQ(WhyNotEqual(text, {}), "");
  }
}

TEST(SubgroupManual, GspmdRegionsThatLeaveAnAxisFree) {
  EXPECT_EQ(WhyNotEqual(R"(HloModule m, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[4,6] parameter(0), sharding={devices=[2,2]<=[4]}
  c = f32[4,6] custom-call(x), custom_call_target="Sharding", backend_config="unspecified_dims=[1]", sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
  l = f32[2,6] custom-call(c), custom_call_target="SPMDFullToShardShape", backend_config="unspecified_dims=[0,1]", sharding={devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}}
  s = f32[2,6] all-reduce(l), channel_id=1, replica_groups={{0,2},{1,3}}, use_global_device_ids=true, to_apply=add
  d = f32[6,6] dot(s, l), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  y = f32[2,6] dot(l, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  k = f32[2,6] custom-call(y), custom_call_target="Sharding", backend_config="unspecified_dims=[0,1]", sharding={devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}}
  f = f32[4,6] custom-call(k), custom_call_target="SPMDShardToFullShape", backend_config="unspecified_dims=[1]", sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
  ROOT r = f32[4,6] add(f, x)
}
)",
                        {}),
            "");
}

}  // namespace
}  // namespace shardcall
