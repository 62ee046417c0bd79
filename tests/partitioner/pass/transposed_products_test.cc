// SPDX-License-Identifier: Apache-2.0
// Products that are transposed, maybe after a reduction over devices, are computed as they are
// wanted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/partitioner/pass/pass_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::Not;

// The text after the pass of these instructions behind two parameters, f32[3,12] %x and f32[3,8]
// %y, and of a sum `add`; empty if it is the same.
std::string Turned(const std::string& body) {
  return TextAfter(*MakeTransposedProducts(), absl::StrCat(R"(
add {
  left = f32[] parameter(0)
  right = f32[] parameter(1)
  ROOT sum = f32[] add(left, right)
}
ENTRY e {
  x = f32[3,12] parameter(0)
  y = f32[3,8] parameter(1)
)",
                                                           body, "}\n"));
}

constexpr char kProduct[] =
    "p = f32[12,8] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}";
constexpr char kScatter[] =
    "s = f32[12,2] reduce-scatter(p), replica_groups={{0,1,2,3}}, dimensions={1}, to_apply=add";

TEST(TransposedProducts, ScatteredAlongTheOuterDimension) {
  const std::string text = Turned(absl::StrCat(kProduct, "\n", kScatter, R"(
  ROOT r = f32[2,12] transpose(s), dimensions={1,0}
)"));
  EXPECT_THAT(text, HasSubstr("f32[8,12]{1,0} dot(%y, %x)"));
  EXPECT_THAT(text, HasSubstr("ROOT %s = f32[2,12]{1,0} reduce-scatter(%p)"));
  EXPECT_THAT(text, HasSubstr("dimensions={0}"));
  EXPECT_THAT(text, Not(HasSubstr("transpose")));
}

TEST(TransposedProducts, WhatStandsBetweenFollows) {
  const std::string text = Turned(absl::StrCat(kProduct, R"(
  h = bf16[12,8] convert(p)
  s = bf16[12,2] reduce-scatter(h), replica_groups={{0,1,2,3}}, dimensions={1}, to_apply=add
  a = bf16[12,2] all-reduce(s), replica_groups={{0},{1},{2},{3}}, to_apply=add
  f = f32[12,2] convert(a)
  t = f32[2,12] transpose(f), dimensions={1,0}
  ROOT r = f32[2,12] negate(t)
)"));
  EXPECT_THAT(text, HasSubstr("bf16[8,12]{1,0} convert(%p)"));
  EXPECT_THAT(text, HasSubstr("bf16[2,12]{1,0} all-reduce(%s)"));
  EXPECT_THAT(text, HasSubstr("f32[2,12]{1,0} convert(%a)"));
  EXPECT_THAT(text, HasSubstr("f32[2,12]{1,0} negate(%f)"));
}

TEST(TransposedProducts, ScatteredAlongTheInnerDimension) {
  const std::string text = Turned(absl::StrCat(kProduct, R"(
  s = f32[3,8] reduce-scatter(p), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=add
  ROOT r = f32[8,3] transpose(s), dimensions={1,0}
)"));
  EXPECT_THAT(text, HasSubstr("ROOT %s = f32[8,3]{1,0} reduce-scatter(%p)"));
  EXPECT_THAT(text, HasSubstr("dimensions={1}"));
}

TEST(TransposedProducts, TransposedAtOnce) {
  const std::string text = Turned(absl::StrCat(kProduct, R"(
  ROOT r = f32[8,12] transpose(p), dimensions={1,0}
)"));
  EXPECT_THAT(text, HasSubstr("ROOT %p = f32[8,12]{1,0} dot(%y, %x)"));
}

TEST(TransposedProducts, ReducedWhole) {
  const std::string text = Turned(absl::StrCat(kProduct, R"(
  a = f32[12,8] all-reduce(p), replica_groups={{0,1,2,3}}, to_apply=add
  ROOT r = f32[8,12] transpose(a), dimensions={1,0}
)"));
  EXPECT_THAT(text, HasSubstr("ROOT %a = f32[8,12]{1,0} all-reduce(%p)"));
}

TEST(TransposedProducts, PrecisionOfTheOperandsIsTurned) {
  const std::string text =
      Turned(absl::StrCat(kProduct, ", operand_precision={high,default}\n", kScatter, R"(
  ROOT r = f32[2,12] transpose(s), dimensions={1,0}
)"));
  EXPECT_THAT(text, HasSubstr("operand_precision={default,high}"));
}

TEST(TransposedProducts, SeveralDimensionsOfOneOperand) {
  const std::string text = Turned(R"(
  z = f32[3,2,5] parameter(2)
  p = f32[12,2,5] dot(x, z), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  a = f32[12,2,5] all-reduce(p), replica_groups={{0,1,2,3}}, to_apply=add
  ROOT r = f32[2,5,12] transpose(a), dimensions={1,2,0}
)");
  EXPECT_THAT(text, HasSubstr("f32[2,5,12]{2,1,0} dot(%z, %x)"));
}

TEST(TransposedProducts, TheseStay) {
  const std::string transposed = "\n  ROOT r = f32[2,12] transpose(s), dimensions={1,0}\n";
  EXPECT_EQ(Turned(absl::StrCat(kProduct, "\n", kScatter, R"(
  t = f32[2,12] transpose(s), dimensions={1,0}
  ROOT r = (f32[2,12], f32[12,2]) tuple(t, s)
)")),
            "")
      << "another op reads it";
  EXPECT_EQ(Turned(R"(
  p = f32[8,12] dot(y, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  s = f32[8,3] reduce-scatter(p), replica_groups={{0,1,2,3}}, dimensions={1}, to_apply=add
  ROOT r = f32[3,8] transpose(s), dimensions={1,0}
)"),
            "")
      << "the second operand is the larger one";
  EXPECT_EQ(Turned(absl::StrCat(R"(
  q = f32[12,8] parameter(2)
  p = f32[12,8] negate(q)
)",
                                kScatter, transposed)),
            "")
      << "no product";
  EXPECT_EQ(Turned(R"(
  z = f32[3,2,5] parameter(2)
  p = f32[12,2,5] dot(x, z), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  a = f32[12,2,5] all-reduce(p), replica_groups={{0,1,2,3}}, to_apply=add
  ROOT r = f32[5,2,12] transpose(a), dimensions={2,1,0}
)"),
            "")
      << "not the operands in the other order";
  EXPECT_EQ(Turned(R"(
  z = f32[3,5] parameter(2)
  p = f32[3,12,5] dot(x, z), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={}, rhs_contracting_dims={}
  a = f32[3,12,5] all-reduce(p), replica_groups={{0,1,2,3}}, to_apply=add
  ROOT r = f32[12,5,3] transpose(a), dimensions={1,2,0}
)"),
            "")
      << "batch dimensions";
}

}  // namespace
}  // namespace shardcall
