// SPDX-License-Identifier: Apache-2.0
// Reductions and products over a dimension that a reshape merged are over its parts.
#include "shardcall/partitioner/ir/simplify/merged_dims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/simplify/plain_ops.h"
#include "tests/partitioner/ir/text_util.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// The text of the module with this entry, after it; empty if nothing changes.
std::string Unmerged(const std::string& entry) {
  return TextAfter(absl::StrCat(R"(HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

first {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GE
  v = f32[] select(g, a, b)
  k = s32[] select(g, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k)
}

ENTRY main {
)",
                                entry, "}\n"),
                   InPlainOps);
}

TEST(MergedDims, ASumIsOverTheParts) {
  EXPECT_THAT(Unmerged(R"(
  x = f32[8,4] parameter(0)
  y = f32[32] reshape(x)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(y, zero), dimensions={0}, to_apply=add
)"),
              HasSubstr("f32[] reduce(%x, %zero), dimensions={0,1}"));
}

TEST(MergedDims, WhatIsLeftIsMergedAfterwards) {
  EXPECT_THAT(Unmerged(R"(
  x = f32[8,4,1,3,5] parameter(0)
  y = f32[32,15] reshape(x)
  zero = f32[] constant(0)
  ROOT r = f32[15] reduce(y, zero), dimensions={0}, to_apply=add
)"),
              AllOf(HasSubstr("f32[1,3,5]{2,1,0} reduce(%x, %zero), dimensions={0,1}"),
                    HasSubstr("f32[15]{0} reshape(")));
}

TEST(MergedDims, PlacesAreCountedByThoseOfTheParts) {
  EXPECT_THAT(Unmerged(R"(
  x = f32[8,4] parameter(0)
  y = f32[32] reshape(x)
  i = s32[32] iota(), iota_dimension=0
  low = f32[] constant(-inf)
  zero = s32[] constant(0)
  ROOT r = (f32[], s32[]) reduce(y, i, low, zero), dimensions={0}, to_apply=first
)"),
              AllOf(HasSubstr("s32[8,4]{1,0} iota(), iota_dimension=0"),
                    HasSubstr("s32[8,4]{1,0} iota(), iota_dimension=1"),
                    HasSubstr("s32[] constant(4)"), HasSubstr("dimensions={0,1}")));
}

TEST(MergedDims, AProductContractsTheParts) {
  EXPECT_THAT(Unmerged(R"(
  a = f32[8,4,6] parameter(0)
  b = f32[8,4,7] parameter(1)
  x = f32[32,6] reshape(a)
  y = f32[32,7] reshape(b)
  ROOT r = f32[6,7] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
)"),
              HasSubstr("dot(%a, %b), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}"));
}

TEST(MergedDims, OthersStay) {
  // The parts of the two operands differ; a dimension is a part of one before; one is annotated.
  EXPECT_THAT(Unmerged(R"(
  a = f32[8,4] parameter(0)
  b = f32[4,8] parameter(1)
  x = f32[32] reshape(a)
  y = f32[32] reshape(b)
  ROOT r = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
)"),
              IsEmpty());
  EXPECT_THAT(Unmerged(R"(
  x = f32[8,6] parameter(0)
  y = f32[16,3] reshape(x)
  zero = f32[] constant(0)
  ROOT r = f32[3] reduce(y, zero), dimensions={0}, to_apply=add
)"),
              IsEmpty());
  EXPECT_THAT(Unmerged(R"(
  x = f32[8,4] parameter(0)
  y = f32[32] reshape(x), sharding={devices=[8]<=[8]}
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(y, zero), dimensions={0}, to_apply=add
)"),
              IsEmpty());
}

}  // namespace
}  // namespace shardcall
