// SPDX-License-Identifier: Apache-2.0
// Sums over devices that are added to others before they are reduced, once.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/report.h"
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

const char kSum[] = R"(
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
)";

TEST(WaitingSums, TwoProductsAreReducedOnce) {
  EXPECT_EQ(BytesMoved(Products("ROOT r = f32[64,16] add(p, q)")), kReduced);
  EXPECT_EQ(BytesMoved(Products("ROOT r = f32[64,16] subtract(p, q)")), kReduced);
}

// The gradient of a roll. The row that goes around is read by the pad, through the slice, at the
// price of the slice's own sum, which is not there to be saved a second time by waiting.
TEST(WaitingSums, ARowThatIsPaddedIsNotReducedAsAWholeArray) {
  TextOptions options;
  options.spmd.search = StateSearch::kNone;
  const auto p = Done(R"(
ENTRY main {
  u = f32[4096] parameter(0), sharding={devices=[8]<=[8]}
  a = f32[4095] slice(u), slice={[1:4096]}
  zero = f32[] constant(0)
  pa = f32[4096] pad(a, zero), padding=0_1
  b = f32[1] slice(u), slice={[0:1]}
  pb = f32[4096] pad(b, zero), padding=4095_0
  ROOT r = f32[4096] add(pa, pb), sharding={devices=[8]<=[8]}
}
)",
                      8, options);
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(TotalBytesMoved(p->local), 4);  // XLA: 10.5
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

TEST(WaitingSums, UnreducedParametersAreAddedAndThenReduced) {
  EXPECT_EQ(BytesMoved(R"(
  p = f32[64,16] parameter(0), sharding={unreduced}
  q = f32[16,64] parameter(1), sharding={unreduced}
  t = f32[64,16] transpose(q), dimensions={1,0}
  ROOT r = f32[64,16] add(p, t), sharding={replicated}
)"),
            kReduced);
}

TEST(WaitingSums, WhatIsAnnotatedUnreducedStaysSo) {
  EXPECT_EQ(BytesMoved(R"(
  p = f32[64,16] parameter(0), sharding={devices=[2,1,4]<=[8] last_tile_dims={unreduced}}
  n = f32[64,16] negate(p), sharding={devices=[2,1,4]<=[8] last_tile_dims={unreduced}}
  t = f32[16,64] transpose(n), dimensions={1,0}, sharding={devices=[1,2,4]<=[8] last_tile_dims={unreduced}}
  ROOT r = f32[16,64] add(t, t), sharding={devices=[1,2,4]<=[8] last_tile_dims={unreduced}}
)"),
            0);
}

TEST(WaitingSums, UnreducedValuesThatAreMultipliedAreReduced) {
  EXPECT_EQ(BytesMoved(R"(
  p = f32[64,16] parameter(0), sharding={unreduced}
  ROOT r = f32[64,16] multiply(p, p), sharding={replicated}
)"),
            kReduced);
}

// One device adds it to its part; of what is sharded, each device adds its shard.
TEST(WaitingSums, AnAddendThatIsNoSumBecomesPartOfIt) {
  for (const char* sharding : {"{replicated}", "{devices=[8,1]<=[8]}"}) {
    EXPECT_EQ(BytesMoved(Products(absl::StrCat("  b = f32[64,16] parameter(3), sharding=", sharding,
                                               R"(
  s = f32[64,16] add(p, b)
  ROOT r = f32[64,16] add(s, q), sharding={replicated})"))),
              kReduced)
        << sharding;
  }
}

// The ops after it are linear, and what they make is smaller.
TEST(WaitingSums, WhatIsMadeOfItIsReduced) {
  const auto sent = [&](absl::string_view rest) {
    return BytesMoved(absl::StrCat(kSum, Products(absl::StrCat(rest, ", sharding={replicated}"))));
  };
  constexpr double kOfRow = 2 * 7.0 / 8 * 4;  // bytes by element
  EXPECT_EQ(sent(R"(  zero = f32[] constant(0)
  ROOT r = f32[16] reduce(p, zero), dimensions={0}, to_apply=sum)"),
            16 * kOfRow);
  EXPECT_EQ(sent(R"(  zero = f32[] constant(5)
  m = f32[64] reduce(p, zero), dimensions={1}, to_apply=sum
  n = f32[] constant(16)
  by = f32[64] broadcast(n), dimensions={}
  ROOT r = f32[64] divide(m, by))"),
            64 * kOfRow);
  EXPECT_EQ(sent("  ROOT r = f32[1,16] slice(p), slice={[63:64], [0:16]}"), 16 * kOfRow);
  EXPECT_EQ(sent(R"(  i = s32[] parameter(3)
  zero = s32[] constant(0)
  ROOT r = f32[1,16] dynamic-slice(p, i, zero), dynamic_slice_sizes={1,16})"),
            16 * kOfRow);
  EXPECT_EQ(sent(R"(  i = s32[3] parameter(3)
  ROOT r = f32[3,16] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,16})"),
            3 * 16 * kOfRow);
  EXPECT_EQ(sent(R"(  v = f32[16,2] parameter(3)
  ROOT r = f32[64,2] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0})"),
            64 * 2 * kOfRow);
  EXPECT_EQ(sent(R"(  zero = f32[] constant(0)
  zeros = f32[64,16] broadcast(zero), dimensions={}
  mask = pred[64,16] parameter(3)
  m = f32[64,16] select(mask, p, zeros)
  ROOT r = f32[16] reduce(m, zero), dimensions={0}, to_apply=sum)"),
            16 * kOfRow);
  EXPECT_EQ(sent(R"(  zero = f32[] constant(0)
  m = f32[65,16] pad(p, zero), padding=1_0x0_0
  ROOT r = f32[16] reduce(m, zero), dimensions={0}, to_apply=sum)"),
            16 * kOfRow);
  // A maximum is not linear, and f16 may not hold the products of parts.
  EXPECT_EQ(sent("  ROOT r = f32[64,16] maximum(p, q)"), 2 * kReduced);
  EXPECT_EQ(BytesMoved(R"(
  x = f16[64,32] parameter(0), sharding={devices=[1,8]<=[8]}
  w = f16[32,16] parameter(1), sharding={devices=[8,1]<=[8]}
  v = f16[16,2] parameter(2)
  p = f16[64,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f16[64,2] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={replicated}
)"),
            kReduced / 2);
}

// The product is cut so that it leaves a sum, which costs little as only its mean is read.
TEST(WaitingSums, AProductIsPlannedForWhatIsMadeOfIt) {
  EXPECT_LE(BytesMoved(absl::StrCat(kSum, R"(
ENTRY main {
  x = f32[256,2048] parameter(0), sharding={devices=[8,1]<=[8]}
  y = f32[256,256] parameter(1)
  p = f32[256,2048] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  ROOT r = f32[256] reduce(p, zero), dimensions={1}, to_apply=sum, sharding={devices=[8]<=[8]}
}
)")),
            2 * 7.0 / 8 * 256 * 4);
}

TEST(WaitingSums, OfWhatIsMadeOfThem) {
  const std::vector<std::string> made = {
      "ROOT r = f32[@A] reduce(s, three), dimensions={1}, to_apply=sum<2:1>",
      "ROOT r = f32[@B] reduce(s, zero), dimensions={0}, to_apply=sum<2:1>",
      "ROOT r = f32[2,@B] slice(s), slice={[1:3], [0:@B]}<2:2>",
      "ROOT r = f32[@A,@B] reverse(s), dimensions={0}<2:2>",
      "ROOT r = f32[@A,@A] dot(s, v), lhs_contracting_dims={1}, rhs_contracting_dims={1}<2:2>",
      "m = f32[@A,@B] select(mask, s, zeros)\n  ROOT r = f32[@A] reduce(m, zero), dimensions={1}, "
      "to_apply=sum<2:1>",
      "m = f32[@A,@B] select(mask, zeros, s)\n  ROOT r = f32[@A,@B] add(m, p)<2:2>",
      "m = f32[@P,@B] pad(s, zero), padding=1_0x0_0\n  ROOT r = f32[@P] reduce(m, zero), "
      "dimensions={1}, to_apply=sum<2:1>",
  };
  for (const std::string& m : made) {
    SCOPED_TRACE(m);
    VerifyFamily({.text = absl::StrCat(kSum, R"(
ENTRY main {
  x = f32[@A,@K] parameter(0)<0:2>
  w = f32[@K,@B] parameter(1)
  y = f32[@A,@B] parameter(2)<1:2>
  v = f32[@A,@B] parameter(3)
  p = f32[@A,@B] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[@A,@B] add(p, y)
  zero = f32[] constant(0)
  three = f32[] constant(3)
  zeros = f32[@A,@B] broadcast(zero), dimensions={}
  mask = pred[@A,@B] compare(y, v), direction=LT
  )",
                                       m, "\n}\n"),
                  .sizes = {{{'A', 8}, {'K', 16}, {'B', 4}, {'P', 9}},
                            {{'A', 5}, {'K', 7}, {'B', 3}, {'P', 6}}},
                  .max_cases = 120});
  }
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

// A loop of `trips` iterations that carries i, x, w and g, where g, f32[16,16], is only added to,
// and x is another one each time. `rest` of the body ends with the sum `s`, and `condition` with
// the k that is compared with `trips`. `more`: instructions of the entry, which hold memory.
std::string Accumulating(int trips, absl::string_view rest,
                         absl::string_view condition = "k = s32[] copy(i)",
                         absl::string_view sharding = "{replicated}", absl::string_view more = "") {
  return absl::StrCat(R"(
body {
  t = (s32[], f32[16,32], f32[32,16], f32[16,16]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[16,32] get-tuple-element(t), index=1
  w = f32[32,16] get-tuple-element(t), index=2
  g = f32[16,16] get-tuple-element(t), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  p = f32[16,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)",
                      rest, R"(
  next = f32[16,32] negate(x)
  ROOT r = (s32[], f32[16,32], f32[32,16], f32[16,16]) tuple(j, next, w, s)
}
condition {
  t = (s32[], f32[16,32], f32[32,16], f32[16,16]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
)",
                      condition, R"(
  n = s32[] constant()",
                      trips, R"_()
  ROOT c = pred[] compare(k, n), direction=LT
}
ENTRY main {
  x = f32[16,32] parameter(0), sharding={devices=[1,8]<=[8]}
  w = f32[32,16] parameter(1), sharding={devices=[8,1]<=[8]}
  g = f32[16,16] parameter(2), sharding=)_",
                      sharding, more, R"_(
  zero = s32[] constant(0)
  t = (s32[], f32[16,32], f32[32,16], f32[16,16]) tuple(zero, x, w, g)
  l = (s32[], f32[16,32], f32[32,16], f32[16,16]) while(t), condition=condition, body=body
  ROOT r = f32[16,16] get-tuple-element(l), index=3, sharding=)_",
                      sharding, "\n}\n");
}
constexpr double kAccumulated = 2 * 7.0 / 8 * 16 * 16 * 4;  // one all-reduce of f32[16,16] over 8

TEST(WaitingSums, AnAccumulatorOfALoopIsReducedAfterIt) {
  EXPECT_EQ(BytesMoved(Accumulating(10, "s = f32[16,16] add(g, p)")), kAccumulated);
  EXPECT_EQ(BytesMoved(Accumulating(10, "s = f32[16,16] add(p, g)")), kAccumulated);
  EXPECT_EQ(BytesMoved(Accumulating(10, "s = f32[16,16] subtract(g, p)")), kAccumulated);
}

TEST(WaitingSums, WhatIsAddedToAnAccumulatorMayBeASumOfSeveral) {
  EXPECT_EQ(BytesMoved(Accumulating(10, R"(
  n = f32[16,16] negate(p)
  v = f32[16,16] transpose(p), dimensions={1,0}
  q = f32[16,16] add(n, v)
  s = f32[16,16] add(g, q))")),
            10 * kAccumulated);  // p has two users, and is reduced for both
  EXPECT_EQ(BytesMoved(Accumulating(10, R"(
  q = f32[16,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,highest}
  v = f32[16,16] transpose(p), dimensions={1,0}
  u = f32[16,16] add(q, v)
  s = f32[16,16] add(g, u))")),
            kAccumulated);
}

TEST(WaitingSums, NarrowSumsAreAddedUpAsWiderFloats) {
  const std::string narrow = R"(
  h = bf16[16,32] convert(x)
  v = bf16[32,16] convert(w)
  q = bf16[16,16] dot(h, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)";
  EXPECT_EQ(BytesMoved(Accumulating(10, narrow + R"(
  c = f32[16,16] convert(q)
  s = f32[16,16] add(g, c))")),
            kAccumulated);
  // Not as integers, which would be cut from fractions, nor as narrower floats.
  EXPECT_EQ(BytesMoved(Accumulating(10, narrow + R"(
  e = s32[16,16] convert(q)
  c = f32[16,16] convert(e)
  s = f32[16,16] add(g, c))")),
            10 * kAccumulated / 2);
  EXPECT_EQ(BytesMoved(Accumulating(10, narrow + R"(
  e = f8e5m2[16,16] convert(q)
  c = f32[16,16] convert(e)
  s = f32[16,16] add(g, c))")),
            10 * kAccumulated / 2);
}

TEST(WaitingSums, SoAreSumsThatAreScaled) {
  const auto scaled = [](const std::string& number, const std::string& op) {
    return BytesMoved(Accumulating(10, absl::StrCat("c = f32[] constant(", number, R"()
  b = f32[16,16] broadcast(c), dimensions={}
  d = f32[16,16] )",
                                                    op, R"(
  s = f32[16,16] add(g, d))")));
  };
  EXPECT_EQ(scaled("3", "divide(p, b)"), kAccumulated);
  EXPECT_EQ(scaled("-0.25", "multiply(p, b)"), kAccumulated);
  EXPECT_EQ(scaled("1", "multiply(b, p)"), kAccumulated);
  EXPECT_EQ(scaled("4", "multiply(p, b)"), kAccumulated);
  // A divisor may be zero where a part is zero.
  EXPECT_EQ(scaled("0", "divide(p, b)"), 10 * kAccumulated);
  // Not linear in p.
  EXPECT_EQ(scaled("4", "divide(b, p)"), 10 * kAccumulated);
}

// The moving average of gradients, and one to which a weight's decay is added.
TEST(WaitingSums, AccumulatorsThatAreScaledAndAddedToBesides) {
  EXPECT_EQ(BytesMoved(Accumulating(10, R"(
  c = f32[] constant(0.9)
  b = f32[16,16] broadcast(c), dimensions={}
  h = f32[16,16] multiply(g, b)
  s = f32[16,16] add(h, p))")),
            kAccumulated);
  EXPECT_EQ(BytesMoved(Accumulating(10, R"(
  c = f32[] constant(3)
  b = f32[16,16] broadcast(c), dimensions={}
  h = f32[16,16] add(g, b)
  s = f32[16,16] add(p, h))")),
            kAccumulated);
}

TEST(WaitingSums, StrictOnesAreNotMultiplied) {
  const std::string scaled = Accumulating(10, R"(
  c = f32[] constant(0.9)
  b = f32[16,16] broadcast(c), dimensions={}
  h = f32[16,16] multiply(p, b)
  s = f32[16,16] add(g, h))");
  TextOptions strict;
  strict.spmd.strict_partial = true;
  EXPECT_EQ(BytesMoved(scaled, 8, strict), 10 * kAccumulated);
  EXPECT_EQ(BytesMoved(scaled), kAccumulated);
}

// -0 on the devices that do not hold an element would be +0, or NaN, after other products.
TEST(WaitingSums, ElementsThatOneDeviceHoldsPassPositiveConstantsAlone) {
  const auto made = [](const std::string& ops) {
    return absl::StrCat(R"(
ENTRY main {
  x = f32[64,16] parameter(0), sharding={devices=[8,1]<=[8]}
  f = f32[1,16] parameter(1)
  k = s32[] parameter(2)
  zero = s32[] constant(0)
  s = f32[1,16] dynamic-slice(x, k, zero), dynamic_slice_sizes={1,16}
  )",
                        ops, "\n  ROOT r = f32[1,8] slice(m), slice={[0:1], [0:8]}\n}\n");
  };
  const auto scaled = [&](const std::string& number, const std::string& op) {
    return made(absl::StrCat("c = f32[] constant(", number,
                             ")\n  b = f32[1,16] broadcast(c), dimensions={}\n  m = f32[1,16] ",
                             op));
  };
  constexpr double kAll = 2 * 7.0 / 8 * 16 * 4, kLess = kAll / 2;
  for (const char* op : {"multiply(s, b)", "divide(s, b)"}) {
    EXPECT_EQ(BytesMoved(scaled("2", op)), kLess) << op;
    EXPECT_EQ(BytesMoved(scaled("-2", op)), kAll) << op;
    EXPECT_EQ(BytesMoved(scaled("inf", op)), kAll) << op;
  }
  const std::string product = made("m = f32[1,16] multiply(f, s)");
  EXPECT_EQ(BytesMoved(product), kAll);
  const std::string text = Instantiate(product, {}, TestMesh{{8}}, {});
  for (uint64_t seed = 1; seed < 4; ++seed) EXPECT_EQ(WhyNotEqual(text, {.seed = seed}), "");
}

TEST(WaitingSums, WhatALoopReadsIsReducedInEachIteration) {
  // By the body.
  EXPECT_EQ(BytesMoved(Accumulating(10, R"(
  e = f32[16,16] multiply(g, g)
  q = f32[16,16] add(p, e)
  s = f32[16,16] add(g, q))")),
            10 * kAccumulated);
  // By the condition.
  EXPECT_EQ(BytesMoved(Accumulating(10, "s = f32[16,16] add(g, p)",
                                    R"(
  g = f32[16,16] get-tuple-element(t), index=3
  v = f32[1,1] slice(g), slice={[0:1], [0:1]}
  u = f32[] reshape(v)
  e = s32[] convert(u)
  zero = s32[] constant(0)
  none = s32[] multiply(e, zero)
  k = s32[] add(i, none))")),
            SpmdOptions().cost.trip_count * kAccumulated);
}

// Gradients of weights that are sharded: 16 rows of them in place of 2 are 896 bytes more.
TEST(WaitingSums, AnAccumulatorMayWaitInLargerShardsThatTakeLittleMemory) {
  const std::string sharded = "{devices=[8,1]<=[8]}", counter = "k = s32[] copy(i)";
  const std::string add = "s = f32[16,16] add(g, p)";
  EXPECT_EQ(BytesMoved(Accumulating(10, add, counter, sharded)), 10 * kAccumulated / 2);
  EXPECT_EQ(BytesMoved(Accumulating(10, add, counter, sharded,
                                    "\n  e = f32[1600] parameter(3), sharding={replicated}")),
            kAccumulated / 2);
}

TEST(WaitingSums, ALoopOfOneIterationGainsNothing) {
  EXPECT_EQ(BytesMoved(Accumulating(1, "s = f32[16,16] add(g, p)")), kAccumulated);
}

// Gradients of two weights over micro-batches, as JAX writes them, with every sharding of the
// batches and of one weight.
TEST(WaitingSums, OfAccumulatedGradients) {
  VerifyFamily({.text = R"(
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
body {
  t = (s32[], f32[3,@K,@A], f32[@A,@B], f32[@A,@B], f32[@B]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[3,@K,@A] get-tuple-element(t), index=1
  w = f32[@A,@B] get-tuple-element(t), index=2
  g = f32[@A,@B] get-tuple-element(t), index=3
  b = f32[@B] get-tuple-element(t), index=4
  one = s32[] constant(1)
  j = s32[] add(i, one)
  zero = s32[] constant(0)
  s = f32[1,@K,@A] dynamic-slice(x, i, zero, zero), dynamic_slice_sizes={1,@K,@A}
  y = f32[@K,@A] reshape(s)
  h = f32[@K,@B] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[@A,@B] dot(y, h), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  half = f32[] constant(0.5)
  halves = f32[@A,@B] broadcast(half), dimensions={}
  d = f32[@A,@B] multiply(e, halves)
  init = f32[] constant(0)
  c = f32[@B] reduce(h, init), dimensions={0}, to_apply=sum
  gd = f32[@A,@B] add(g, d)
  bc = f32[@B] add(b, c)
  ROOT r = (s32[], f32[3,@K,@A], f32[@A,@B], f32[@A,@B], f32[@B]) tuple(j, x, w, gd, bc)
}
condition {
  t = (s32[], f32[3,@K,@A], f32[@A,@B], f32[@A,@B], f32[@B]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[3,@K,@A] parameter(0)<0:3>
  w = f32[@A,@B] parameter(1)<1:2>
  g = f32[@A,@B] parameter(2)<2:2>
  b = f32[@B] parameter(3)
  zero = s32[] constant(0)
  t = (s32[], f32[3,@K,@A], f32[@A,@B], f32[@A,@B], f32[@B]) tuple(zero, x, w, g, b)
  l = (s32[], f32[3,@K,@A], f32[@A,@B], f32[@A,@B], f32[@B]) while(t), condition=condition, body=body
  gs = f32[@A,@B] get-tuple-element(l), index=3
  bs = f32[@B] get-tuple-element(l), index=4
  ROOT r = (f32[@A,@B], f32[@B]) tuple(gs, bs)
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
