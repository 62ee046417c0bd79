// SPDX-License-Identifier: Apache-2.0
// Ops whose window is at a constant place, and others that plainer ops make up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/ir/simplify/plain_ops.h"
#include "tests/partitioner/ir/text_util.h"

namespace shardcall {
namespace {

// The entry's lines after its parameters and constants; empty if nothing has a plainer name.
std::string Plainer(const std::string& entry) {
  const std::string text = absl::StrCat(R"(HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

second {
  a = f32[] parameter(0)
  ROOT b = f32[] parameter(1)
}

twice {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] add(a, b)
  ROOT r = f32[] add(c, b)
}

ENTRY main {
)",
                                        entry, "}\n");
  absl::StatusOr<Module> module = Parse(text);
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return "";
  const std::optional<Rewritten> plainer = InPlainOps(*module);
  if (!plainer.has_value()) return "";
  std::string out;
  for (InstrId id : plainer->module.comp(plainer->module.entry()).instructions) {
    const Instruction& i = plainer->module.instr(id);
    if (i.opcode == Opcode::kParameter || i.opcode == Opcode::kConstant) continue;
    absl::StrAppend(&out, OpcodeText(i.opcode), " ");
  }
  return out;
}

// Of a window of 3 x 2 in an array of 8 x 4, written at `indices`.
std::string Scatter(const std::string& indices, const std::string& to_apply) {
  return absl::StrCat("  x = f32[8,4] parameter(0)\n  u = f32[3,2] parameter(1)\n", indices,
                      "  ROOT r = f32[8,4] scatter(x, i, u), update_window_dims={0,1}, "
                      "inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, "
                      "index_vector_dim=0, to_apply=",
                      to_apply, "\n");
}

TEST(PlacedWindows, AScatterOfOneWindowIsAnUpdate) {
  EXPECT_EQ(Plainer(Scatter("  i = s32[2] constant({5, 2})\n", "second")), "dynamic-update-slice ");
  EXPECT_EQ(Plainer(Scatter("  i = s32[2] constant({5, 2})\n", "add")),
            "slice add dynamic-update-slice ");
}

TEST(PlacedWindows, ItsPlaceMayBePutTogether) {
  EXPECT_EQ(Plainer(Scatter("  c = s32[] constant(1)\n  i = s32[2] broadcast(c), dimensions={}\n",
                            "second")),
            "broadcast dynamic-update-slice ");
  EXPECT_EQ(Plainer(Scatter("  c = s32[] constant(1)\n  d = s32[] constant(2)\n"
                            "  e = s32[1] reshape(c)\n  f = s32[1] reshape(d)\n"
                            "  i = s32[2] concatenate(e, f), dimensions={0}\n",
                            "second")),
            "reshape reshape concatenate dynamic-update-slice ");
}

TEST(PlacedWindows, OneThatDoesNotFitStaysAScatter) {
  EXPECT_EQ(Plainer(Scatter("  i = s32[2] constant({6, 2})\n", "second")), "");
  EXPECT_EQ(Plainer(Scatter("  i = s32[2] constant({-1, 2})\n", "second")), "");
}

TEST(PlacedWindows, OneAtAPlaceOfRunTimeStaysAScatter) {
  EXPECT_EQ(Plainer(Scatter("  i = s32[2] parameter(2)\n", "second")), "");
}

TEST(PlacedWindows, OneOfAnotherComputationStaysAScatter) {
  EXPECT_EQ(Plainer(Scatter("  i = s32[2] constant({5, 2})\n", "twice")), "");
}

TEST(PlacedWindows, AStrideOverOneRowIsNone) {
  const std::string slice = R"(
  x = f32[8,9] parameter(0)
  ROOT r = f32[1,3] slice(x), slice={[1:4:3], [0:9:3]}
)";
  EXPECT_EQ(Plainer(slice), "slice ");
  EXPECT_EQ(Plainer(absl::StrReplaceAll(slice, {{"[1:4:3]", "[1:2]"}})), "");
}

TEST(PlacedWindows, AnUpdateOfAllIsTheUpdate) {
  const std::string update = R"(
  x = f32[8,4] parameter(0)
  u = f32[8,4] parameter(1)
  i = s32[] parameter(2)
  ROOT r = f32[8,4] dynamic-update-slice(x, u, i, i)
)";
  EXPECT_EQ(Plainer(update), "copy ");
  EXPECT_EQ(Plainer(absl::StrReplaceAll(update, {{"u = f32[8,4]", "u = f32[8,3]"}})), "");
}

// All parameters of a fusion are to be used.
TEST(PlacedWindows, AnUpdateOfAllInAFusionStays) {
  const absl::StatusOr<Module> module = Parse(R"(HloModule m
f {
  x = f32[8] parameter(0)
  u = f32[8] parameter(1)
  i = s32[] parameter(2)
  ROOT r = f32[8] dynamic-update-slice(x, u, i)
}
ENTRY main {
  x = f32[8] parameter(0)
  u = f32[8] parameter(1)
  i = s32[] parameter(2)
  ROOT r = f32[8] fusion(x, u, i), kind=kLoop, calls=f
}
)");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_FALSE(InPlainOps(*module).has_value());
}

TEST(PlacedWindows, ADynamicSliceAtConstantsIsASlice) {
  EXPECT_EQ(Plainer(R"(  x = f32[8,4] parameter(0)
  c = s32[] constant(7)
  z = s32[] constant(0)
  ROOT r = f32[3,4] dynamic-slice(x, c, z), dynamic_slice_sizes={3,4}
)"),
            "slice ");
  EXPECT_EQ(Plainer(R"(  x = f32[8,4] parameter(0)
  c = s32[] parameter(1)
  z = s32[] constant(0)
  ROOT r = f32[3,4] dynamic-slice(x, c, z), dynamic_slice_sizes={3,4}
)"),
            "");
}

std::string GatherRows(const std::string& indices) {
  return absl::StrCat("  x = f32[16,4] parameter(0)\n", indices,
                      "  ROOT r = f32[5,4] gather(x, i), offset_dims={1}, "
                      "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
                      "slice_sizes={1,4}\n");
}

TEST(PlacedWindows, RowsOfTheSameDistanceAreASlice) {
  EXPECT_EQ(Plainer(GatherRows("  i = s32[5,1] constant({{2}, {5}, {8}, {11}, {14}})\n")),
            "slice ");
  EXPECT_EQ(Plainer(GatherRows("  i = s32[5] constant({12, 9, 6, 3, 0})\n")), "slice reverse ");
}

// jnp.arange(1, 16, 3), and what JAX makes of an index that might be negative.
TEST(PlacedWindows, RowsThatAreComputedAreFollowed) {
  EXPECT_EQ(Plainer(GatherRows(R"(  n = s32[5] iota(), iota_dimension=0
  three = s32[] constant(3)
  threes = s32[5] broadcast(three), dimensions={}
  m = s32[5] multiply(n, threes)
  one = s32[] constant(1)
  ones = s32[5] broadcast(one), dimensions={}
  a = s32[5] add(m, ones)
  zero = s32[] constant(0)
  zeros = s32[5] broadcast(zero), dimensions={}
  l = pred[5] compare(a, zeros), direction=LT
  size = s32[] constant(16)
  sizes = s32[5] broadcast(size), dimensions={}
  b = s32[5] add(a, sizes)
  s = s32[5] select(l, b, a)
  i = s32[5,1] reshape(s)
)")),
            "iota broadcast multiply broadcast add broadcast compare broadcast add select reshape "
            "slice ");
}

// Each window has a dimension of one row, beside that of the rows.
TEST(PlacedWindows, RowsInWindowsOfTheirOwnStayAGather) {
  EXPECT_EQ(Plainer(R"(  x = f32[16,4] parameter(0)
  i = s32[5,1] constant({{2}, {5}, {8}, {11}, {14}})
  ROOT r = f32[5,1,4] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
)"),
            "");
}

TEST(PlacedWindows, RowsThatAreNotInBoundsOrOfOtherDistancesStayAGather) {
  EXPECT_EQ(Plainer(GatherRows("  i = s32[5] constant({4, 7, 10, 13, 16})\n")), "");
  EXPECT_EQ(Plainer(GatherRows("  i = s32[5] constant({0, 1, 2, 3, 5})\n")), "");
  EXPECT_EQ(Plainer(GatherRows("  i = s32[5] parameter(1)\n")), "");
}

std::string ScatterRows(const std::string& indices, const std::string& to_apply) {
  return absl::StrCat("  x = f32[16,4] parameter(0)\n  u = f32[5,4] parameter(1)\n", indices,
                      "  ROOT r = f32[16,4] scatter(x, i, u), update_window_dims={1}, "
                      "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                      "index_vector_dim=1, to_apply=",
                      to_apply, "\n");
}

TEST(PlacedWindows, UpdatesOfRowsOfTheSameDistanceArePadded) {
  const std::string rows = "  i = s32[5,1] constant({{1}, {4}, {7}, {10}, {13}})\n";
  EXPECT_EQ(Plainer(ScatterRows(rows, "add")), "pad add ");
  EXPECT_EQ(Plainer(ScatterRows(rows, "second")), "broadcast pad pad select ");
  EXPECT_EQ(Plainer(ScatterRows(rows, "twice")), "");
  EXPECT_EQ(Plainer(ScatterRows("  i = s32[5] constant({13, 10, 7, 4, 1})\n", "add")), "");
}

TEST(PlainOps, PartsAreCutBeforeTheyAreLookedUp) {
  const std::string gather = R"(  x = f32[16,8] parameter(0)
  i = s32[5] parameter(1)
  ROOT r = f32[5,SIZE] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,SIZE}
)";
  EXPECT_EQ(Plainer(absl::StrReplaceAll(gather, {{"SIZE", "3"}})), "slice gather ");
  EXPECT_EQ(Plainer(absl::StrReplaceAll(gather, {{"SIZE", "8"}})), "");
}

TEST(PlainOps, PartsThatAreUpdatedArePutBack) {
  const std::string scatter = R"(  x = f32[16,8] parameter(0)
  i = s32[5] parameter(1)
  u = f32[5,SIZE] parameter(2)
  ROOT r = f32[16,8] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=twice
)";
  EXPECT_EQ(Plainer(absl::StrReplaceAll(scatter, {{"SIZE", "3"}})),
            "slice scatter dynamic-update-slice ");
  EXPECT_EQ(Plainer(absl::StrReplaceAll(scatter, {{"SIZE", "8"}})), "");
}

TEST(PlainOps, BatchNormsAreSumsAndArithmetic) {
  const std::string training = R"(  x = TYPE[8,4] parameter(0)
  s = TYPE[4] parameter(1)
  o = TYPE[4] parameter(2)
  ROOT t = (TYPE[8,4], TYPE[4], TYPE[4]) batch-norm-training(x, s, o), epsilon=0.5, feature_index=1
)";
  const std::string of_f32 = Plainer(absl::StrReplaceAll(training, {{"TYPE", "f32"}}));
  EXPECT_THAT(of_f32, testing::ContainsRegex("reduce .*reduce .*sqrt "));
  EXPECT_THAT(of_f32, testing::EndsWith("tuple "));
  EXPECT_THAT(of_f32, testing::Not(testing::HasSubstr("convert")));
  EXPECT_THAT(Plainer(absl::StrReplaceAll(training, {{"TYPE", "bf16"}})),
              testing::HasSubstr("convert convert convert tuple "));
  EXPECT_EQ(Plainer(absl::StrReplaceAll(training, {{"TYPE", "f32"}, {"[8,4]", "[0,4]"}})), "");
}

// x.at[1:-1:2, 1:-1].set(u) and x.at[::2, ::2].add(u) of JAX.
TEST(PlacedWindows, RowsMayBeOfSeveralDimensionsOrOfWindows) {
  EXPECT_EQ(Plainer(R"(  x = f32[16,8] parameter(0)
  u = f32[7,6] parameter(1)
  n = s32[7,1] constant({{1}, {3}, {5}, {7}, {9}, {11}, {13}})
  one = s32[] constant(1)
  ones = s32[7,1] broadcast(one), dimensions={}
  i = s32[7,2] concatenate(n, ones), dimensions={1}
  ROOT r = f32[16,8] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=second
)"),
            "broadcast concatenate broadcast pad pad select ");
  EXPECT_EQ(Plainer(R"(  x = f32[16,8] parameter(0)
  u = f32[4,8] parameter(1)
  n = s32[8] constant({0, 2, 4, 6, 8, 10, 12, 14})
  m = s32[4] constant({0, 2, 4, 6})
  rows = s32[4,8,1] broadcast(n), dimensions={1}
  columns = s32[4,8,1] broadcast(m), dimensions={0}
  i = s32[4,8,2] concatenate(rows, columns), dimensions={2}
  ROOT r = f32[16,8] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=2, to_apply=add
)"),
            "broadcast broadcast concatenate transpose pad add ");
}

std::string ReduceOfTwo(absl::string_view first, absl::string_view second) {
  const absl::StatusOr<Module> module = Parse(absl::StrCat(R"(HloModule m
both {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  p = f32[] )",
                                                           first, "\n  q = f32[] ", second, R"(
  ROOT t = (f32[], f32[]) tuple(p, q)
}
ENTRY main {
  x = f32[8,4] parameter(0)
  y = f32[8,4] parameter(1)
  z = f32[] parameter(2)
  ROOT r = (f32[4], f32[4]) reduce(x, y, z, z), dimensions={0}, to_apply=both
}
)"));
  EXPECT_TRUE(module.ok()) << module.status();
  const std::optional<Rewritten> plainer = InPlainOps(*module);
  if (!plainer.has_value()) return "";
  std::string out;
  for (InstrId id : plainer->module.comp(plainer->module.entry()).instructions) {
    absl::StrAppend(&out, OpcodeText(plainer->module.instr(id).opcode), " ");
  }
  return out;
}

TEST(SeparateReduces, OfOperandsThatAreCombinedEachByItself) {
  const std::string two = "parameter parameter parameter reduce reduce tuple ";
  EXPECT_EQ(ReduceOfTwo("add(a, c)", "maximum(b, d)"), two);
  EXPECT_EQ(ReduceOfTwo("add(c, a)", "multiply(b, d)"), two);
}

TEST(SeparateReduces, OthersStayOne) {
  EXPECT_EQ(ReduceOfTwo("add(a, b)", "maximum(c, d)"), "");
  EXPECT_EQ(ReduceOfTwo("add(a, d)", "maximum(b, c)"), "");
  EXPECT_EQ(ReduceOfTwo("subtract(a, c)", "maximum(b, d)"), "");
}

}  // namespace
}  // namespace shardcall
