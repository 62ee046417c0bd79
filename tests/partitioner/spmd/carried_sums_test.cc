// SPDX-License-Identifier: Apache-2.0
// Sums over devices that annotations leave unreduced where loops carry them and branches end with
// them, as JAX writes them on meshes with explicit axes.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/api/report.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

// SUM(x) is an annotation of x as a sum over all 8 devices, WHOLE(x) one as what all have. The loop
// runs 8 times, its counter is annotated, too. `step` makes the next value `n` of `c`.
std::string Loop(absl::string_view type, absl::string_view init, absl::string_view step) {
  return absl::StrReplaceAll(
      absl::StrCat(R"(HloModule m, num_partitions=8

body {
  p = (s32[], T, f32[8,64,16]) parameter(0)
  k = s32[] get-tuple-element(p), index=0
  w = T get-tuple-element(p), index=1
  x = f32[8,64,16] get-tuple-element(p), index=2
  k1 = s32[] custom-call(k), custom_call_target="Sharding", sharding={replicated}
  one = s32[] constant(1)
  one1 = s32[] custom-call(one), custom_call_target="Sharding", sharding={replicated}
  k2 = s32[] add(k1, one1)
  k3 = s32[] custom-call(k2), custom_call_target="Sharding", sharding={replicated}
  zero = s32[] constant(0)
  c = T custom-call(w), custom_call_target="Sharding", sharding={unreduced}
  slice = f32[1,64,16] dynamic-slice(x, k, zero, zero), dynamic_slice_sizes={1,64,16}
  row = f32[64,16] reshape(slice)
  product = f32[16,16] dot(row, row), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  d = f32[16,16] custom-call(product), custom_call_target="Sharding", sharding={unreduced}
)",
                   step, R"(
  e = T custom-call(n), custom_call_target="Sharding", sharding={unreduced}
  ROOT t = (s32[], T, f32[8,64,16]) tuple(k3, e, x)
}

cond {
  p = (s32[], T, f32[8,64,16]) parameter(0)
  k = s32[] get-tuple-element(p), index=0
  k1 = s32[] custom-call(k), custom_call_target="Sharding", sharding={replicated}
  limit = s32[] constant(8)
  limit1 = s32[] custom-call(limit), custom_call_target="Sharding", sharding={replicated}
  ROOT less = pred[] compare(k1, limit1), direction=LT
}

ENTRY main {
  x = f32[8,64,16] parameter(0), sharding={devices=[1,8,1]<=[8]}
  zero = s32[] constant(0)
  none = f32[] constant(0)
)",
                   init, R"(
  i = T custom-call(start), custom_call_target="Sharding", sharding={unreduced}
  t = (s32[], T, f32[8,64,16]) tuple(zero, i, x)
  loop = (s32[], T, f32[8,64,16]) while(t), condition=cond, body=body
  got = T get-tuple-element(loop), index=1
  sum = T custom-call(got), custom_call_target="Sharding", sharding={unreduced}
  ROOT all = T custom-call(sum), custom_call_target="Sharding", sharding={replicated}
}
)"),
      {{" T ", absl::StrCat(" ", type, " ")}, {", T,", absl::StrCat(", ", type, ",")}});
}

// An all-reduce of `elements` numbers, as each of 8 devices sends it.
double Reduced(double elements) { return 2 * 7. / 8 * elements * 4; }

const char kZeros[] = "  start = f32[16,16] broadcast(none), dimensions={}";
const char kAdd[] = "  n = f32[16,16] add(c, d)";

TEST(CarriedSums, AreReducedOnceAfterTheLoop) {
  const char* const product = R"(
  first = f32[1,64,16] slice(x), slice={[0:1], [0:64], [0:16]}
  row = f32[64,16] reshape(first)
  start = f32[16,16] dot(row, row), lhs_contracting_dims={0}, rhs_contracting_dims={0})";
  for (const char* init : {kZeros, product}) {
    const std::string text = Loop("f32[16,16]", init, kAdd);
    EXPECT_EQ(WhyNotEqual(text, {}), "");
    const auto p = PartitionText(text, {});
    ASSERT_TRUE(p.ok()) << p.status();
    EXPECT_EQ(TotalBytesMoved((*p)->local), Reduced(16 * 16)) << LocalText(**p);
  }
}

TEST(CarriedSums, ThatALoopStacksAreReducedOnce) {
  const std::string text =
      Loop("f32[8,16,16]", "  start = f32[8,16,16] broadcast(none), dimensions={}", R"(
  u = f32[1,16,16] reshape(d)
  v = f32[1,16,16] custom-call(u), custom_call_target="Sharding", sharding={unreduced}
  n = f32[8,16,16] dynamic-update-slice(c, v, k, zero, zero))");
  EXPECT_EQ(WhyNotEqual(text, {}), "");
  const auto p = PartitionText(text, {});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(TotalBytesMoved((*p)->local), Reduced(8 * 16 * 16)) << LocalText(**p);
}

// The value may be used for something else where it begins whole.
TEST(CarriedSums, OfWhichTheFirstValueIsNoSumAreReducedInTheLoop) {
  std::string text = Loop("f32[16,16]", kZeros, kAdd);
  const std::string i = R"(i = f32[16,16] custom-call(start), custom_call_target="Sharding", )";
  text = absl::StrReplaceAll(text, {{i + "sharding={unreduced}", i + "sharding={replicated}"}});
  EXPECT_EQ(WhyNotEqual(text, {}), "");
}

TEST(CarriedSums, ThatBranchesEndWithAreReducedAfterThem) {
  const std::string text = R"(HloModule m, num_partitions=8

one {
  x = f32[64,16] parameter(0)
  p = f32[16,16] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT s = f32[16,16] custom-call(p), custom_call_target="Sharding", sharding={unreduced}
}

other {
  x = f32[64,16] parameter(0)
  y = f32[64,16] add(x, x)
  p = f32[16,16] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT s = f32[16,16] custom-call(p), custom_call_target="Sharding", sharding={unreduced}
}

ENTRY main {
  x = f32[64,16] parameter(0), sharding={devices=[8,1]<=[8]}
  which = pred[] parameter(1)
  r = f32[16,16] conditional(which, x, x), true_computation=one, false_computation=other
  sum = f32[16,16] custom-call(r), custom_call_target="Sharding", sharding={unreduced}
  n = f32[16,16] add(sum, sum)
  less = f32[16,16] custom-call(n), custom_call_target="Sharding", sharding={unreduced}
  ROOT all = f32[16,16] custom-call(less), custom_call_target="Sharding", sharding={replicated}
}
)";
  EXPECT_EQ(WhyNotEqual(text, {}), "");
  const auto p = PartitionText(text, {});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(TotalBytesMoved((*p)->local), Reduced(16 * 16)) << LocalText(**p);
  EXPECT_EQ(CountOpcode(**p, Opcode::kAllReduce), 1);
}

}  // namespace
}  // namespace shardcall
