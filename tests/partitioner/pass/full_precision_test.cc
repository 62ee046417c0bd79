// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/partitioner/pass/pass_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

std::string DotOf(const std::string& type, const std::string& more) {
  return absl::StrCat("ENTRY e {\n  a = ", type, "[4,6] parameter(0)\n  b = ", type,
                      "[6,2] parameter(1)\n  ROOT r = ", type,
                      "[4,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", more,
                      "\n}\n");
}

std::string Precise(const std::string& text) { return TextAfter(*MakeFullPrecision(), text); }

TEST(FullPrecision, ProductsOfDefaultPrecisionAskForTheHighest) {
  EXPECT_THAT(Precise(DotOf("f32", "")), HasSubstr("operand_precision={highest,highest}"));
  EXPECT_THAT(Precise(DotOf("c64", "")), HasSubstr("operand_precision={highest,highest}"));
  EXPECT_THAT(Precise(R"(ENTRY e {
  x = f32[1,8,8,3] parameter(0)
  w = f32[3,3,3,4] parameter(1)
  ROOT r = f32[1,6,6,4] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f
}
)"),
              HasSubstr("operand_precision={highest,highest}"));
}

TEST(FullPrecision, WhatAProgramStatesStays) {
  EXPECT_EQ(Precise(DotOf("f32", ", operand_precision={high,default}")), "");
  EXPECT_EQ(Precise(DotOf("f32", ", algorithm=dot_tf32_tf32_f32")), "");
}

TEST(FullPrecision, OtherTypesHaveOne) {
  for (const char* type : {"bf16", "f16", "f64", "s32"}) {
    EXPECT_EQ(Precise(DotOf(type, "")), "") << type;
  }
}

}  // namespace
}  // namespace shardcall
