// SPDX-License-Identifier: Apache-2.0
// Reduce with every monoid, other initial values, several operands, custom
// computations; reduce-window.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/program_family.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {
    {{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 7}}, {{'A', 3}, {'B', 5}}, {{'A', 1}, {'B', 8}}};

std::string ReduceText(const std::string& type, const std::string& op, const std::string& init) {
  return absl::StrReplaceAll(R"(
f {
  a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  ROOT r = TYPE[] OP(a, b)
}

ENTRY main {
  x = TYPE[@A,@B] parameter(0)<0:2>
  init = TYPE[] constant(INIT)
  rows = TYPE[@A] reduce(x, init), dimensions={1}, to_apply=f<1:1>
  columns = TYPE[@B] reduce(x, init), dimensions={0}, to_apply=f<2:1>
  all = TYPE[] reduce(x, init), dimensions={0,1}, to_apply=f
  ROOT t = (TYPE[@A], TYPE[@B], TYPE[]) tuple(rows, columns, all)
}
)",
                             {{"TYPE", type}, {"OP", op}, {"INIT", init}});
}

TEST(Reduce, SumsOfFloatsAndIntegers) {
  VerifyFamily({.text = ReduceText("f32", "add", "0"), .sizes = kSizes, .no_fallback = true});
  VerifyFamily({.text = ReduceText("s32", "add", "0"), .sizes = kSizes, .no_fallback = true});
}

TEST(Reduce, MaximumAndMinimumIgnorePadding) {
  VerifyFamily(
      {.text = ReduceText("f32", "maximum", "-inf"), .sizes = kSizes, .no_fallback = true});
  VerifyFamily({.text = ReduceText("f32", "minimum", "inf"), .sizes = kSizes, .no_fallback = true});
  VerifyFamily({.text = ReduceText("s32", "maximum", "-2147483648"),
                .sizes = kSizes,
                .max_cases = 100,
                .no_fallback = true});
  VerifyFamily({.text = ReduceText("u8", "minimum", "255"),
                .sizes = kSizes,
                .max_cases = 100,
                .no_fallback = true});
}

TEST(Reduce, ProductsAndBits) {
  VerifyFamily({.text = ReduceText("s32", "multiply", "1"),
                .sizes = kSizes,
                .max_cases = 100,
                .no_fallback = true});
  for (const char* op : {"and", "or", "xor"}) {
    for (const char* type : {"pred", "s32"}) {
      SCOPED_TRACE(op);
      SCOPED_TRACE(type);
      const std::string init = op == std::string("and") ? (type[0] == 'p' ? "true" : "-1")
                               : type[0] == 'p'         ? "false"
                                                        : "0";
      VerifyFamily({.text = ReduceText(type, op, init),
                    .sizes = kSizes,
                    .max_cases = 60,
                    .no_fallback = true});
    }
  }
}

TEST(Reduce, AnInitialValueOtherThanTheIdentityCountsOnce) {
  for (const auto& [type, op, init] :
       std::vector<std::tuple<const char*, const char*, const char*>>{{"f32", "add", "5"},
                                                                      {"f32", "maximum", "3"},
                                                                      {"s32", "multiply", "3"},
                                                                      {"f32", "minimum", "-1"},
                                                                      {"s32", "xor", "9"}}) {
    SCOPED_TRACE(op);
    VerifyFamily({.text = ReduceText(type, op, init),
                  .sizes = kSizes,
                  .max_cases = 120,
                  .no_fallback = true});
  }
}

// f8e8m0fnu has no zero, so no shard can hold nothing of a sum, and no collective reduces it.
TEST(Reduce, WithoutAnIdentityTheDimensionIsWhole) {
  for (const char* op : {"add", "maximum", "multiply"}) {
    VerifyFamily({.text = ReduceText("f8e8m0fnu", op, "2"), .sizes = kSizes, .max_cases = 120});
  }
}

// A NaN on one device only would be lost in a backend whose collectives do not propagate it.
TEST(Reduce, AnInitialValueThatMayCountTwiceIsOnAllDevices) {
  const auto local = [](const char* op) {
    const auto p = PartitionText(
        absl::StrCat("HloModule m, num_partitions=4\n",
                     absl::StrReplaceAll(ReduceText("f32", op, "nan"),
                                         {{"@A", "8"},
                                          {"@B", "4"},
                                          {"<0:2>", ", sharding={devices=[4,1]<=[4]}"},
                                          {"<1:1>", ""},
                                          {"<2:1>", ""}})),
        {});
    EXPECT_TRUE(p.ok()) << p.status();
    return LocalText(**p);
  };
  EXPECT_THAT(local("maximum"), testing::Not(testing::HasSubstr("partition-id")));
  EXPECT_THAT(local("add"), testing::HasSubstr("partition-id"));
}

TEST(Reduce, AnInitialValueThatIsAParameter) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  init = f32[] parameter(1)
  ROOT r = f32[@A] reduce(x, init), dimensions={1}, to_apply=f<1:1>
}
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

// argmax: the pair is compared by value, then by index.
TEST(Reduce, SeveralOperandsWithTheirOwnComputation) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  gt = pred[] compare(a, b), direction=GT
  eq = pred[] compare(a, b), direction=EQ
  lt = pred[] compare(i, j), direction=LT
  tie = pred[] and(eq, lt)
  p = pred[] or(gt, tie)
  v = f32[] select(p, a, b)
  w = s32[] select(p, i, j)
  ROOT r = (f32[], s32[]) tuple(v, w)
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  n = s32[@A,@B] iota(), iota_dimension=1<1:2>
  lowest = f32[] constant(-inf)
  most = s32[] constant(2147483647)
  ROOT r = (f32[@A], s32[@A]) reduce(x, n, lowest, most), dimensions={1}, to_apply=f
}
)",
                .sizes = kSizes,
                .max_cases = 300});
}

TEST(Reduce, SumOfTwoOperandsAtOnce) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  s = f32[] add(a, c)
  m = f32[] maximum(b, d)
  ROOT r = (f32[], f32[]) tuple(s, m)
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  y = f32[@A,@B] parameter(1)<1:2>
  zero = f32[] constant(0)
  lowest = f32[] constant(-inf)
  ROOT r = (f32[@B], f32[@B]) reduce(x, y, zero, lowest), dimensions={0}, to_apply=f
}
)",
                .sizes = kSizes,
                .max_cases = 200});
}

TEST(Reduce, ReductionsFollowedByElementwiseAndBroadcast) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  zero = f32[] constant(0)
  s = f32[@A] reduce(x, zero), dimensions={1}, to_apply=f
  b = f32[@A,@B] broadcast(s), dimensions={0}
  d = f32[@A,@B] subtract(x, b)<1:2>
  ROOT r = f32[@B] reduce(d, zero), dimensions={0}, to_apply=f<2:1>
}
)",
                .sizes = kSizes,
                .no_fallback = true});
}

TEST(ReduceWindow, WindowsOverShardedAndWholeDimensions) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  zero = f32[] constant(0)
  ROOT r = f32[@A,@B] reduce-window(x, zero), window={size=1x3 pad=0_0x2_0}, to_apply=f<1:2>
}
)",
                .sizes = kSizes,
                .max_cases = 300});
}

TEST(ReduceWindow, StridedMaximum) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b)
}

ENTRY main {
  x = f32[@A,@(B*2)] parameter(0)<0:2>
  lowest = f32[] constant(-inf)
  ROOT r = f32[@A,@B] reduce-window(x, lowest), window={size=1x2 stride=1x2}, to_apply=f<1:2>
}
)",
                .sizes = kSizes,
                .max_cases = 200});
}

}  // namespace
}  // namespace shardcall
