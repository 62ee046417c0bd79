// SPDX-License-Identifier: Apache-2.0
// Sums over devices that are added to others before they are reduced, once.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {{{'A', 8}, {'K', 16}, {'B', 4}}, {{'A', 5}, {'K', 7}, {'B', 3}}};

// Two products of f32[64,32] and f32[32,16] over eight shards of the 32; `rest` ends with the root.
std::string Products(absl::string_view rest) {
  return absl::StrCat(R"(
ENTRY main {
  x = f32[64,32] parameter(0), sharding={devices=[1,8]<=[8]}
  y = f32[64,32] parameter(1), sharding={devices=[1,8]<=[8]}
  w = f32[32,16] parameter(2), sharding={devices=[8,1]<=[8]}
  p = f32[64,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  q = f32[64,16] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)",
                      rest, "\n}\n");
}
constexpr double kReduced = 2 * 7.0 / 8 * 64 * 16 * 4;  // one all-reduce of f32[64,16] over 8

TEST(WaitingSums, TwoProductsAreReducedOnce) {
  EXPECT_EQ(BytesMoved(Products("ROOT r = f32[64,16] add(p, q)")), kReduced);
  EXPECT_EQ(BytesMoved(Products("ROOT r = f32[64,16] subtract(p, q)")), kReduced);
}

TEST(WaitingSums, SoAreChainsOfThem) {
  EXPECT_EQ(BytesMoved(Products(R"(
  z = f32[64,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}
  s = f32[64,16] add(p, q)
  ROOT r = f32[64,16] add(s, z))")),
            kReduced);
}

TEST(WaitingSums, TransposedReshapedAndNegatedOnesWaitToo) {
  EXPECT_EQ(BytesMoved(Products(R"(
  n = f32[64,16] negate(p)
  t = f32[16,64] transpose(n), dimensions={1,0}
  u = f32[16,64] transpose(q), dimensions={1,0}
  s = f32[16,64] add(t, u)
  ROOT r = f32[16,8,8] reshape(s))")),
            kReduced);
}

TEST(WaitingSums, ASumThatIsWantedInShardsIsReduceScattered) {
  EXPECT_EQ(BytesMoved(Products("ROOT r = f32[64,16] add(p, q), sharding={devices=[8,1]<=[8]}")),
            kReduced / 2);
}

TEST(WaitingSums, AnAddendThatIsNoSumLetsNothingWait) {
  EXPECT_EQ(BytesMoved(Products(R"(
  b = f32[64,16] parameter(3)
  s = f32[64,16] add(p, b)
  ROOT r = f32[64,16] add(s, q))")),
            2 * kReduced);
}

TEST(WaitingSums, AValueThatOthersReadIsReducedForAll) {
  EXPECT_EQ(BytesMoved(Products(R"(
  s = f32[64,16] add(p, q)
  e = f32[64,16] exponential(p)
  ROOT r = (f32[64,16], f32[64,16]) tuple(s, e))")),
            2 * kReduced);
}

TEST(WaitingSums, TheRootOfAComputationDoesNotWait) {
  EXPECT_EQ(BytesMoved(Products("ROOT r = (f32[64,16], f32[64,16]) tuple(p, q)")), 2 * kReduced);
}

TEST(WaitingSums, OfShardedProducts) {
  VerifyFamily({.text = R"(
ENTRY main {
  x = f32[@A,@K] parameter(0)<0:2>
  y = f32[@A,@K] parameter(1)<1:2>
  w = f32[@K,@B] parameter(2)
  v = f32[@K,@B] parameter(3)
  p = f32[@A,@B] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  q = f32[@A,@B] dot(y, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[@A,@B] add(p, q)<2:2>
}
)",
                .sizes = kSizes,
                .no_fallback = true});
}

TEST(WaitingSums, OfTransposedProductsAndReductions) {
  VerifyFamily({.text = R"(
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[@A,@K] parameter(0)<0:2>
  w = f32[@K,@B] parameter(1)
  y = f32[@B,@A,@K] parameter(2)<1:3>
  p = f32[@A,@B] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[@B,@A] transpose(p), dimensions={1,0}
  n = f32[@B,@A] negate(t)
  zero = f32[] constant(0)
  q = f32[@B,@A] reduce(y, zero), dimensions={2}, to_apply=sum
  s = f32[@B,@A] subtract(q, n)
  ROOT r = f32[@(A*B)] reshape(s)<2:1>
}
)",
                .sizes = kSizes});
}

// In each iteration one sum, of the two that are added.
TEST(WaitingSums, InLoops) {
  VerifyFamily({.text = R"(
body {
  t = (s32[], f32[@A,@A], f32[@A,@A]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[@A,@A] get-tuple-element(t), index=1
  w = f32[@A,@A] get-tuple-element(t), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  p = f32[@A,@A] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  q = f32[@A,@A] dot(w, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[@A,@A] subtract(p, q)
  ROOT r = (s32[], f32[@A,@A], f32[@A,@A]) tuple(j, s, w)
}
condition {
  t = (s32[], f32[@A,@A], f32[@A,@A]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(2)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[@A,@A] parameter(0)<0:2>
  w = f32[@A,@A] parameter(1)<1:2>
  zero = s32[] constant(0)
  t = (s32[], f32[@A,@A], f32[@A,@A]) tuple(zero, x, w)
  l = (s32[], f32[@A,@A], f32[@A,@A]) while(t), condition=condition, body=body
  ROOT r = f32[@A,@A] get-tuple-element(l), index=1
}
)",
                .sizes = {{{'A', 8}}, {{'A', 5}}}});
}

}  // namespace
}  // namespace shardcall
