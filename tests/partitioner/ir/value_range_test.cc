// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/value_range.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/partitioner/ir/text_util.h"

namespace shardcall {
namespace {

// "low..high" of the root, or "unknown".
std::string RangeOfRoot(const std::string& body) {
  absl::StatusOr<Module> m =
      Parse(absl::StrCat("HloModule m, num_partitions=8\nENTRY e {\n", body, "}\n"));
  EXPECT_TRUE(m.ok()) << m.status();
  if (!m.ok()) return "";
  const auto range = RangeOf(*m, m->comp(m->entry()).root);
  return range ? absl::StrCat(range->low, "..", range->high) : "unknown";
}

TEST(ValueRange, ConstantsIotasAndPartitionIdsHaveOne) {
  EXPECT_EQ(RangeOfRoot("ROOT c = s32[3] constant({5, -2, 9})\n"), "-2..9");
  EXPECT_EQ(RangeOfRoot("ROOT c = s8[2] constant({-128, 127})\n"), "-128..127");
  EXPECT_EQ(RangeOfRoot("ROOT i = s32[4,7] iota(), iota_dimension=1\n"), "0..6");
  EXPECT_EQ(RangeOfRoot("ROOT p = u32[] partition-id()\n"), "0..7");
  EXPECT_EQ(RangeOfRoot("ROOT x = s32[] parameter(0)\n"), "unknown");
  EXPECT_EQ(RangeOfRoot("ROOT c = f32[] constant(1)\n"), "unknown");
}

TEST(ValueRange, ArithmeticOfAShardsStartIsFollowed) {
  EXPECT_EQ(RangeOfRoot(R"(
  p = u32[] partition-id()
  d = s32[] convert(p)
  two = s32[] constant(2)
  q = s32[] divide(d, two)
  r = s32[] remainder(d, two)
  three = s32[] constant(3)
  a = s32[] multiply(q, three)
  ROOT s = s32[] add(a, r)
)"),
            "0..10");
}

TEST(ValueRange, AClampBoundsWhatIsUnknown) {
  EXPECT_EQ(RangeOfRoot(R"(
  x = s32[] parameter(0)
  low = s32[] constant(0)
  high = s32[] constant(4)
  ROOT c = s32[] clamp(low, x, high)
)"),
            "0..4");
  EXPECT_EQ(RangeOfRoot(R"(
  x = s32[] parameter(0)
  eight = s32[] constant(8)
  ROOT r = s32[] remainder(x, eight)
)"),
            "-7..7");
}

TEST(ValueRange, WhatMayWrapAroundIsUnknown) {
  EXPECT_EQ(RangeOfRoot(R"(
  a = s32[] constant(2147483647)
  b = s32[] constant(1)
  ROOT s = s32[] add(a, b)
)"),
            "unknown");
  EXPECT_EQ(RangeOfRoot(R"(
  a = u32[] constant(1)
  b = u32[] constant(2)
  ROOT s = u32[] subtract(a, b)
)"),
            "unknown");
  EXPECT_EQ(RangeOfRoot(R"(
  a = s32[] constant(300)
  ROOT s = s8[] convert(a)
)"),
            "unknown");
  EXPECT_EQ(RangeOfRoot("ROOT c = u64[] constant(18446744073709551615)\n"), "unknown");
}

// The upper bound wins where the lower one is above it.
TEST(ValueRange, AClampWhoseBoundsCrossIsTheUpperOne) {
  EXPECT_EQ(RangeOfRoot(R"(
  low = s32[] constant(2)
  x = s32[] constant(-3)
  ROOT c = s32[] clamp(low, x, x)
)"),
            "-3..-3");
  EXPECT_EQ(RangeOfRoot(R"(
  low = s32[] constant(2)
  x = s32[] parameter(0)
  high = s32[2] constant({-3, 7})
  y = s32[2] broadcast(x), dimensions={}
  ROOT c = s32[2] clamp(low, y, high)
)"),
            "-3..7");
}

TEST(ValueRange, ASelectHasTheRangesOfBoth) {
  EXPECT_EQ(RangeOfRoot(R"(
  p = pred[] parameter(0)
  a = s32[] constant(-1)
  b = s32[] constant(6)
  ROOT s = s32[] select(p, a, b)
)"),
            "-1..6");
}

TEST(ValueRange, LongChainsAreUnknownInBoundedTime) {
  std::string body = "x0 = s32[] constant(0)\none = s32[] constant(1)\n";
  for (int k = 0; k < 100000; ++k) {
    absl::StrAppend(&body, k == 99999 ? "ROOT " : "", "x", k + 1, " = s32[] add(x", k, ", one)\n");
  }
  EXPECT_EQ(RangeOfRoot(body), "unknown");
}

}  // namespace
}  // namespace shardcall
