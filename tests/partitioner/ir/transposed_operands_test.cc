// SPDX-License-Identifier: Apache-2.0
// Products of transposed parameters are products of these.
#include "shardcall/partitioner/ir/simplify/transposed_operands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/simplify/plain_ops.h"
#include "tests/partitioner/ir/text_util.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// The text of the module with this entry, after it; empty if nothing changes.
std::string Straight(const std::string& entry) {
  return TextAfter(absl::StrCat("HloModule m\n\nENTRY main {\n", entry, "}\n"), InPlainOps);
}

TEST(TransposedOperands, AreReadAsTheyAre) {
  EXPECT_THAT(Straight(R"(
  x = f32[16,8] parameter(0)
  w = f32[32,8] parameter(1)
  t = f32[8,32] transpose(w), dimensions={1,0}
  ROOT r = f32[16,32] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)"),
              HasSubstr("dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={1}"));
}

TEST(TransposedOperands, OnBothSidesWithBatches) {
  EXPECT_THAT(Straight(R"(
  x = f32[8,3,16] parameter(0)
  w = bf16[32,3,8] parameter(1)
  c = f32[32,3,8] convert(w)
  s = f32[3,16,8] transpose(x), dimensions={1,2,0}
  t = f32[3,8,32] transpose(c), dimensions={1,2,0}
  ROOT r = f32[3,16,32] dot(s, t), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
)"),
              HasSubstr("dot(%x, %c), lhs_batch_dims={1}, lhs_contracting_dims={0}, "
                        "rhs_batch_dims={1}, rhs_contracting_dims={2}"));
}

TEST(TransposedOperands, StayWhereTheResultWouldBeTransposed) {
  EXPECT_THAT(Straight(R"(
  x = f32[16,8] parameter(0)
  w = f32[4,32,8] parameter(1)
  t = f32[8,32,4] transpose(w), dimensions={2,1,0}
  ROOT r = f32[16,32,4] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)"),
              IsEmpty());
}

TEST(TransposedOperands, StayWhereTheyAreAnnotatedOrComputedOrTheSame) {
  const std::string dot = R"(
  ROOT r = f32[8,8] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
)";
  EXPECT_THAT(Straight(R"(
  x = f32[8,8] parameter(0)
  w = f32[8,8] parameter(1)
  t = f32[8,8] transpose(w), dimensions={1,0}, sharding={replicated})" +
                       dot),
              IsEmpty());
  EXPECT_THAT(Straight(R"(
  x = f32[8,8] parameter(0)
  w = f32[8,8] parameter(1)
  y = f32[8,8] tanh(w)
  t = f32[8,8] transpose(y), dimensions={1,0})" +
                       dot),
              IsEmpty());
  EXPECT_THAT(Straight(R"(
  x = f32[8,8] parameter(0)
  t = f32[8,8] transpose(x), dimensions={1,0})" +
                       dot),
              IsEmpty());
}

}  // namespace
}  // namespace shardcall
