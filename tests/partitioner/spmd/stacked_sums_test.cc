// SPDX-License-Identifier: Apache-2.0
// Sums over devices that a loop stacks, and that are reduced once the stack is added up.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

// A loop of ten iterations that stacks the products x·w of f32[16,32] and f32[32,16], sharded by
// the contraction, in s, f32[10,16,16]. `body` makes the `part` of it, f32[1,16,16], of the product
// p; `rest` is the entry behind the loop, which has the stack as s; `more` are computations.
std::string Stacking(absl::string_view rest,
                     absl::string_view body = "part = f32[1,16,16] reshape(p)",
                     absl::string_view more = "") {
  return absl::StrCat(more, R"(
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
body {
  t = (s32[], f32[16,32], f32[32,16], f32[10,16,16]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[16,32] get-tuple-element(t), index=1
  w = f32[32,16] get-tuple-element(t), index=2
  s = f32[10,16,16] get-tuple-element(t), index=3
  one = s32[] constant(1)
  zero = s32[] constant(0)
  j = s32[] add(i, one)
  p = f32[16,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  )",
                      body, R"(
  u = f32[10,16,16] dynamic-update-slice(s, part, i, zero, zero)
  next = f32[16,32] negate(x)
  ROOT r = (s32[], f32[16,32], f32[32,16], f32[10,16,16]) tuple(j, next, w, u)
}
condition {
  t = (s32[], f32[16,32], f32[32,16], f32[10,16,16]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(10)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[16,32] parameter(0), sharding={devices=[1,8]<=[8]}
  w = f32[32,16] parameter(1), sharding={devices=[8,1]<=[8]}
  none = s32[] constant(0)
  zero = f32[] constant(0)
  empty = f32[10,16,16] broadcast(zero), dimensions={}
  t = (s32[], f32[16,32], f32[32,16], f32[10,16,16]) tuple(none, x, w, empty)
  l = (s32[], f32[16,32], f32[32,16], f32[10,16,16]) while(t), condition=condition, body=body
  s = f32[10,16,16] get-tuple-element(l), index=3
)",
                      rest, "\n}\n");
}
constexpr double kPart = 2 * 7.0 / 8 * 16 * 16 * 4;  // one all-reduce of f32[16,16] over 8

constexpr char kTotal[] =
    "ROOT r = f32[16,16] reduce(s, zero), dimensions={0}, to_apply=sum, sharding={replicated}";

TEST(StackedSums, AreReducedAfterTheyAreAddedUp) {
  EXPECT_EQ(BytesMoved(Stacking(kTotal)), kPart);
  EXPECT_EQ(BytesMoved(Stacking(R"(
  n = f32[10,16,16] negate(s)
  d = f32[10,16,16] transpose(n), dimensions={0,2,1}
  ROOT r = f32[] reduce(d, zero), dimensions={0,1,2}, to_apply=sum, sharding={replicated})")),
            kPart / 256);
}

TEST(StackedSums, PartsMayBePassedOnBeforeTheyAreStacked) {
  EXPECT_EQ(BytesMoved(Stacking(kTotal, R"(
  q = f32[16,16] transpose(p), dimensions={1,0}
  h = f32[16,16] negate(q)
  part = f32[1,16,16] reshape(h))")),
            kPart);
}

TEST(StackedSums, OfACallThatGivesSeveralResults) {
  const std::string callee = R"(
callee {
  x = f32[16,32] parameter(0)
  w = f32[32,16] parameter(1)
  p = f32[16,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = f32[16,32] negate(x)
  ROOT r = (f32[16,16], f32[16,32]) tuple(p, h)
})";
  EXPECT_EQ(BytesMoved(Stacking(kTotal, R"(
  c = (f32[16,16], f32[16,32]) call(x, w), to_apply=callee
  q = f32[16,16] get-tuple-element(c), index=0
  part = f32[1,16,16] reshape(q))",
                                callee)),
            kPart);
}

TEST(StackedSums, AreReducedInTheLoopWhereTheStackIsWanted) {
  EXPECT_EQ(BytesMoved(Stacking("ROOT r = f32[10,16,16] negate(s), sharding={replicated}")),
            10 * kPart);
  EXPECT_EQ(BytesMoved(Stacking(R"(
  e = f32[10,16,16] multiply(s, s)
  ROOT r = f32[16,16] reduce(e, zero), dimensions={0}, to_apply=sum, sharding={replicated})")),
            10 * kPart);
}

TEST(StackedSums, OfWhichTheLoopReadsOthersAreReducedInIt) {
  EXPECT_EQ(BytesMoved(Stacking(kTotal, R"(
  b = f32[1,16,16] slice(s), slice={[0:1], [0:16], [0:16]}
  e = f32[16,16] reshape(b)
  q = f32[16,16] multiply(e, p)
  part = f32[1,16,16] reshape(q))")),
            10 * kPart);
}

TEST(StackedSums, AStackWithTwoReadersIsReducedInTheLoop) {
  EXPECT_EQ(BytesMoved(Stacking(R"(
  v = f32[10,16,16] get-tuple-element(l), index=3
  e = f32[10,16,16] exponential(v)
  f = f32[10,16,16] add(s, e)
  ROOT r = f32[16,16] reduce(f, zero), dimensions={0}, to_apply=sum, sharding={replicated})")),
            10 * kPart);
}

TEST(StackedSums, TwoStacksThatAreAddedAreReducedOnce) {
  const auto twice = [](absl::string_view rest) {
    return absl::StrCat(R"(
body {
  t = (s32[], f32[16,32], f32[32,16], f32[10,16,16], f32[10,16,16]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[16,32] get-tuple-element(t), index=1
  w = f32[32,16] get-tuple-element(t), index=2
  s = f32[10,16,16] get-tuple-element(t), index=3
  v = f32[10,16,16] get-tuple-element(t), index=4
  one = s32[] constant(1)
  zero = s32[] constant(0)
  j = s32[] add(i, one)
  p = f32[16,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  part = f32[1,16,16] reshape(p)
  y = f32[16,32] sine(x)
  q = f32[16,16] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  other = f32[1,16,16] reshape(q)
  us = f32[10,16,16] dynamic-update-slice(s, part, i, zero, zero)
  uv = f32[10,16,16] dynamic-update-slice(v, other, i, zero, zero)
  next = f32[16,32] negate(x)
  ROOT r = (s32[], f32[16,32], f32[32,16], f32[10,16,16], f32[10,16,16]) tuple(j, next, w, us, uv)
}
condition {
  t = (s32[], f32[16,32], f32[32,16], f32[10,16,16], f32[10,16,16]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(10)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[16,32] parameter(0), sharding={devices=[1,8]<=[8]}
  w = f32[32,16] parameter(1), sharding={devices=[8,1]<=[8]}
  none = s32[] constant(0)
  zero = f32[] constant(0)
  e = f32[10,16,16] broadcast(zero), dimensions={}
  t = (s32[], f32[16,32], f32[32,16], f32[10,16,16], f32[10,16,16]) tuple(none, x, w, e, e)
  l = (s32[], f32[16,32], f32[32,16], f32[10,16,16], f32[10,16,16]) while(t), condition=condition, body=body
  s = f32[10,16,16] get-tuple-element(l), index=3
  v = f32[10,16,16] get-tuple-element(l), index=4
)",
                        rest, "\n}\n");
  };
  EXPECT_EQ(BytesMoved(twice("ROOT r = f32[10,16,16] add(s, v), sharding={replicated}")),
            10 * kPart);
  EXPECT_EQ(BytesMoved(twice("ROOT r = f32[10,16,16] multiply(s, v), sharding={replicated}")),
            20 * kPart);
}

// Gradients of stacked weights over micro-batches: a loop over the layers in one over the batches,
// as JAX writes them, with every sharding of the batches and of the weights.
TEST(StackedSums, OfLayersInALoopOverMicroBatches) {
  VerifyFamily({.text = R"(
layer {
  t = (s32[], f32[@K,@A], f32[3,@A,@A], f32[3,@A,@A]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[@K,@A] get-tuple-element(t), index=1
  w = f32[3,@A,@A] get-tuple-element(t), index=2
  s = f32[3,@A,@A] get-tuple-element(t), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  zero = s32[] constant(0)
  b = f32[1,@A,@A] dynamic-slice(w, i, zero, zero), dynamic_slice_sizes={1,@A,@A}
  v = f32[@A,@A] reshape(b)
  y = f32[@K,@A] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  two = f32[] constant(2)
  twos = f32[@K,@A] broadcast(two), dimensions={}
  z = f32[@K,@A] remainder(y, twos)
  p = f32[@A,@A] dot(x, z), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  q = f32[1,@A,@A] reshape(p)
  u = f32[3,@A,@A] dynamic-update-slice(s, q, i, zero, zero)
  ROOT r = (s32[], f32[@K,@A], f32[3,@A,@A], f32[3,@A,@A]) tuple(j, z, w, u)
}
more_layers {
  t = (s32[], f32[@K,@A], f32[3,@A,@A], f32[3,@A,@A]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
batch {
  t = (s32[], f32[2,@K,@A], f32[3,@A,@A], f32[3,@A,@A]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  xs = f32[2,@K,@A] get-tuple-element(t), index=1
  w = f32[3,@A,@A] get-tuple-element(t), index=2
  g = f32[3,@A,@A] get-tuple-element(t), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  zero = s32[] constant(0)
  b = f32[1,@K,@A] dynamic-slice(xs, i, zero, zero), dynamic_slice_sizes={1,@K,@A}
  x = f32[@K,@A] reshape(b)
  none = f32[] constant(0)
  empty = f32[3,@A,@A] broadcast(none), dimensions={}
  a = (s32[], f32[@K,@A], f32[3,@A,@A], f32[3,@A,@A]) tuple(zero, x, w, empty)
  l = (s32[], f32[@K,@A], f32[3,@A,@A], f32[3,@A,@A]) while(a), condition=more_layers, body=layer
  s = f32[3,@A,@A] get-tuple-element(l), index=3
  gs = f32[3,@A,@A] add(g, s)
  ROOT r = (s32[], f32[2,@K,@A], f32[3,@A,@A], f32[3,@A,@A]) tuple(j, xs, w, gs)
}
more_batches {
  t = (s32[], f32[2,@K,@A], f32[3,@A,@A], f32[3,@A,@A]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(2)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY main {
  xs = f32[2,@K,@A] parameter(0)<0:3>
  w = f32[3,@A,@A] parameter(1)<1:3>
  g = f32[3,@A,@A] parameter(2)
  zero = s32[] constant(0)
  t = (s32[], f32[2,@K,@A], f32[3,@A,@A], f32[3,@A,@A]) tuple(zero, xs, w, g)
  l = (s32[], f32[2,@K,@A], f32[3,@A,@A], f32[3,@A,@A]) while(t), condition=more_batches, body=batch
  ROOT gs = f32[3,@A,@A] get-tuple-element(l), index=3
}
)",
                .sizes = {{{'A', 4}, {'K', 16}}, {{'A', 3}, {'K', 7}}},
                .max_cases = 200});
}

}  // namespace
}  // namespace shardcall
