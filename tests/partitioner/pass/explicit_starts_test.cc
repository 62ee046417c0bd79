// SPDX-License-Identifier: Apache-2.0
// Slices that read what other slices give: their starts are clamped by ops of their own, and the
// module computes the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/pass/pass.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::Not;

// The module's text after the pass.
std::string Explicit(const std::string& body, const std::string& before = "") {
  absl::StatusOr<Module> m = ParseText(
      absl::StrCat("HloModule m, num_partitions=4\n", before, "ENTRY e {\n", body, "}\n"));
  EXPECT_TRUE(m.ok()) << m.status();
  absl::StatusOr<PassResult> r = MakeExplicitStarts()->Run(*m);
  EXPECT_TRUE(r.ok()) << r.status();
  if (!r->changed) return "";
  AssignNames(&r->module);
  EXPECT_TRUE(VerifyModule(r->module, "").ok()) << VerifyModule(r->module, "");
  return PrintModule(r->module);
}

int Count(const std::string& text, const std::string& what) {
  int n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

constexpr char kLast[] = R"(
last {
  a = f32[] parameter(0)
  ROOT b = f32[] parameter(1)
}
)";

TEST(ExplicitStarts, BothStartsOfNestedSlicesAreClamped) {
  const std::string text = Explicit(R"(
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  inner = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}
  n = f32[4] negate(inner)
  ROOT outer = f32[2] dynamic-slice(n, i), dynamic_slice_sizes={2}
)");
  EXPECT_EQ(Count(text, " clamp("), 2) << text;
}

TEST(ExplicitStarts, AStartInRangeStays) {
  const std::string text = Explicit(R"(
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  p = u32[] partition-id()
  d = s32[] convert(p)
  two = s32[] constant(2)
  start = s32[] multiply(d, two)
  shard = f32[2] dynamic-slice(x, start), dynamic_slice_sizes={2}
  ROOT y = f32[1] dynamic-slice(shard, i), dynamic_slice_sizes={1}
)");
  EXPECT_EQ(Count(text, " clamp("), 1) << text;
  EXPECT_THAT(text, HasSubstr("dynamic-slice(%x, %start)"));
}

TEST(ExplicitStarts, SlicesThatNothingNestsStay) {
  EXPECT_EQ(Explicit(R"(
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  i = s32[] parameter(2)
  a = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}
  b = f32[4] dynamic-slice(y, i), dynamic_slice_sizes={4}
  ROOT sum = f32[4] add(a, b)
)"),
            "");
}

TEST(ExplicitStarts, ASliceThatIsWrittenByAnUpdateIsNotCutByIt) {
  EXPECT_EQ(Explicit(R"(
  x = f32[8] parameter(0)
  all = f32[8] parameter(1)
  i = s32[] parameter(2)
  row = f32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}
  n = f32[1] negate(row)
  ROOT y = f32[8] dynamic-update-slice(all, n, i)
)"),
            "");
}

TEST(ExplicitStarts, ABarrierKeepsSlicesApart) {
  EXPECT_EQ(Explicit(R"(
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  a = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}
  kept = f32[4] opt-barrier(a)
  ROOT b = f32[2] dynamic-slice(kept, i), dynamic_slice_sizes={2}
)"),
            "");
}

TEST(ExplicitStarts, AScatterByOneIndexIsAnUpdateInRange) {
  const std::string text = Explicit(R"(
  x = f32[8] parameter(0)
  i = s32[1] parameter(1)
  v = f32[] parameter(2)
  p = u32[] partition-id()
  two = u32[] constant(2)
  start = u32[] multiply(p, two)
  shard = f32[2] dynamic-slice(x, start), dynamic_slice_sizes={2}
  ROOT y = f32[2] scatter(shard, i, v), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=last
)",
                                    kLast);
  EXPECT_THAT(text, Not(HasSubstr(" scatter(")));
  EXPECT_THAT(text, HasSubstr(" dynamic-update-slice("));
  EXPECT_EQ(Count(text, " select("), 1) << text;
}

TEST(ExplicitStarts, AScatterThatNoOpStandsForIsAMap) {
  const std::string text = Explicit(R"(
  x = f32[8] parameter(0)
  i = s32[1] parameter(1)
  v = f32[] parameter(2)
  j = s32[] parameter(3)
  shard = f32[2] dynamic-slice(x, j), dynamic_slice_sizes={2}
  ROOT y = f32[2] scatter(shard, i, v), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=less
)",
                                    R"(
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] subtract(a, b)
}
)");
  EXPECT_THAT(text, HasSubstr(" map("));
}

TEST(ExplicitStarts, AScatterOfSeveralOperandsStandsBetweenBarriers) {
  const std::string text = Explicit(R"(
  x = f32[8] parameter(0)
  i = s32[1] parameter(1)
  v = f32[] parameter(2)
  j = s32[] parameter(3)
  shard = f32[2] dynamic-slice(x, j), dynamic_slice_sizes={2}
  ROOT y = (f32[2], f32[2]) scatter(shard, shard, i, v, v), update_window_dims={},
      inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=both
)",
                                    R"(
both {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT t = (f32[], f32[]) tuple(c, d)
}
)");
  EXPECT_EQ(Count(text, " opt-barrier("), 3) << text;
}

TEST(ExplicitStarts, AScatterOfManyWindowsStays) {
  EXPECT_EQ(Explicit(R"(
  x = f32[8] parameter(0)
  i = s32[3,1] parameter(1)
  v = f32[3] parameter(2)
  j = s32[] parameter(3)
  shard = f32[2] dynamic-slice(x, j), dynamic_slice_sizes={2}
  ROOT y = f32[2] scatter(shard, i, v), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=last
)",
                     kLast),
            "");
}

TEST(ExplicitStarts, ABranchAndALoopThatRunsOnceHandOn) {
  const std::string kBranches = R"(
t {
  a = f32[4] parameter(0)
  ROOT n = f32[4] negate(a)
}
f {
  a = f32[4] parameter(0)
  ROOT k = f32[4] copy(a)
}
)";
  EXPECT_EQ(Count(Explicit(R"(
  x = f32[8] parameter(0)
  i = s32[] parameter(1)
  p = pred[] parameter(2)
  inner = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}
  chosen = f32[4] conditional(p, inner, inner), true_computation=t, false_computation=f
  ROOT outer = f32[2] dynamic-slice(chosen, i), dynamic_slice_sizes={2}
)",
                           kBranches),
                  " clamp("),
            2);
}

TEST(ExplicitStarts, AnIndexOfANarrowTypeIsClampedWithinItsType) {
  const std::string text = Explicit(R"(
  x = f32[300] parameter(0)
  i = s8[] parameter(1)
  inner = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}
  ROOT outer = f32[2] dynamic-slice(inner, i), dynamic_slice_sizes={2}
)");
  EXPECT_THAT(text, HasSubstr("s8[] constant(127)"));
}

}  // namespace
}  // namespace shardcall
