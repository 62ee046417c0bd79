// SPDX-License-Identifier: Apache-2.0
// Indices that count along a dimension become batching dimensions, and others stay.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/partitioner/import/import_testing.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// x[8,16,32] at rows of `i`, and columns of j.
std::string Gather(const std::string& i, const std::string& slice_sizes = "{1,1,32}",
                   const std::string& collapsed = "{0,1}") {
  const std::string offset = collapsed == "{1}" ? "{1,2}" : "{1}";
  return EntryModule(
      absl::StrCat("x = f32[8,16,32] parameter(0)\nj = s32[8,1] parameter(1)\n", i,
                   "ij = s32[8,2] concatenate(i, j), dimensions={1}\n",
                   "ROOT g = ", collapsed == "{1}" ? "f32[8,1,32]" : "f32[8,32]",
                   " gather(x, ij), offset_dims=", offset, ", collapsed_slice_dims=", collapsed,
                   ", start_index_map={0,1}, index_vector_dim=1, slice_sizes=", slice_sizes, "\n"));
}
constexpr char kIota[] = "i = s32[8,1] iota(), iota_dimension=0\n";

std::string Read(const std::string& module) {
  const Program p = Import(module);
  const InstrId root = p.module.comp(p.module.entry()).root;
  const std::string text = PrintModule(p.module);
  const size_t at = text.find(absl::StrCat("%", p.module.instr(root).name, " ="));
  return text.substr(at, text.find('\n', at) - at);
}

TEST(ParallelIndices, OfAGatherAreABatchingDimension) {
  EXPECT_THAT(Read(Gather(kIota)),
              HasSubstr("gather(%x, %j), offset_dims={1}, collapsed_slice_dims={1}, "
                        "start_index_map={1}, operand_batching_dims={0}, "
                        "start_indices_batching_dims={0}, index_vector_dim=1"));
}

TEST(ParallelIndices, OfAScatterAreABatchingDimension) {
  const std::string text = absl::StrReplaceAll(
      R"(HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[8,16,32] parameter(0)
  j = s32[8,1] parameter(1)
  u = f32[8,32] parameter(2)
  IOTA  ij = s32[8,2] concatenate(j, i), dimensions={1}
  ROOT g = f32[8,16,32] scatter(x, ij, u), update_window_dims={1}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, indices_are_sorted=true, to_apply=add
})",
      {{"IOTA", kIota}});
  EXPECT_THAT(Read(text), HasSubstr("scatter(%x, %j, %u), update_window_dims={1}, "
                                    "inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, "
                                    "input_batching_dims={0}, scatter_indices_batching_dims={0}"));
  EXPECT_THAT(Read(text), Not(HasSubstr("indices_are_sorted=true")));
}

TEST(ParallelIndices, OfAllDimensionsLeaveTheSmallestAnIndex) {
  const std::string text = EntryModule(R"(
  x = f32[8,16,32] parameter(0)
  i = s32[8,16,1] iota(), iota_dimension=0
  j = s32[8,16,1] iota(), iota_dimension=1
  ij = s32[8,16,2] concatenate(i, j), dimensions={2}
  ROOT g = f32[8,16,32] gather(x, ij), offset_dims={2}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=2, slice_sizes={1,1,32}
)");
  EXPECT_THAT(Read(text), HasSubstr("gather(%x, %i), offset_dims={2}, collapsed_slice_dims={0}, "
                                    "start_index_map={0}, operand_batching_dims={1}, "
                                    "start_indices_batching_dims={1}"));
  const std::string diagonal = EntryModule(R"(
  x = f32[8,8] parameter(0)
  i = s32[8,1] iota(), iota_dimension=0
  ij = s32[8,2] concatenate(i, i), dimensions={1}
  ROOT g = f32[8] gather(x, ij), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}
)");
  EXPECT_THAT(Read(diagonal), HasSubstr("gather(%x, %i), offset_dims={}, collapsed_slice_dims={1}, "
                                        "start_index_map={1}, operand_batching_dims={0}"));
}

TEST(ParallelIndices, MayBeMadeNonNegativeConvertedAndReshaped) {
  EXPECT_THAT(Read(Gather("r = u8[8] iota(), iota_dimension=0\n"
                          "rows = s32[8] convert(r)\n"
                          "zero = s32[] constant(0)\n"
                          "zeros = s32[8] broadcast(zero), dimensions={}\n"
                          "below = pred[8] compare(rows, zeros), direction=LT\n"
                          "more = s32[8] add(rows, rows)\n"
                          "row = s32[8] select(below, more, rows)\n"
                          "i = s32[8,1] reshape(row)\n")),
              HasSubstr("operand_batching_dims={0}"));
}

TEST(ParallelIndices, ThatDoNotCountOverTheWholeDimensionStay) {
  const std::string others[] = {
      // Other rows.
      "i = s32[8,1] parameter(2)\n",
      // The same row for all.
      "k = s32[1,1] iota(), iota_dimension=0\nl = s32[] reshape(k)\n"
      "i = s32[8,1] broadcast(l), dimensions={}\n",
      // Rows that may be others.
      "r = s32[8,1] iota(), iota_dimension=0\np = pred[8,1] parameter(2)\n"
      "m = s32[8,1] add(r, r)\ni = s32[8,1] select(p, m, r)\n",
      // Twice as far.
      "r = s32[8,1] iota(), iota_dimension=0\ni = s32[8,1] add(r, r)\n",
      // Along a dimension that is split.
      "r = s32[16] iota(), iota_dimension=0\ns = s32[2,8] reshape(r)\n"
      "t = s32[1,8] slice(s), slice={[0:1], [0:8]}\ni = s32[8,1] reshape(t)\n",
  };
  for (const std::string& i : others) {
    EXPECT_THAT(Read(Gather(i)), HasSubstr("gather(%x, %ij)")) << i;
  }
  EXPECT_THAT(Read(absl::StrReplaceAll(Gather(kIota), {{"x = f32[8,", "x = f32[9,"}})),
              HasSubstr("gather(%x, %ij)"));
  // The slice keeps the dimension.
  EXPECT_THAT(Read(Gather(kIota, "{1,1,32}", "{1}")), HasSubstr("gather(%x, %ij)"));
}

TEST(ParallelIndices, AlongTheIndexVectorItselfStay) {
  const std::string text = absl::StrReplaceAll(Gather("i = s32[8,1] iota(), iota_dimension=1\n"),
                                               {{"x = f32[8,", "x = f32[1,"}});
  EXPECT_THAT(Read(text), HasSubstr("gather(%x, %ij)"));
}

TEST(ParallelIndices, InATypeThatIsTooNarrowStay) {
  const std::string text = absl::StrReplaceAll(
      Gather("r = s8[200,1] iota(), iota_dimension=0\ni = s32[200,1] convert(r)\n"),
      {{"[8,", "[200,"}});
  EXPECT_THAT(Read(text), HasSubstr("gather(%x, %ij)"));
}

TEST(ParallelIndices, StayWhereTwoOtherIndicesStandApart) {
  const std::string text = R"(
  x = f32[4,8,5] parameter(0)
  a = s32[8,1] parameter(1)
  b = s32[8,1] parameter(2)
  i = s32[8,1] iota(), iota_dimension=0
  aib = s32[8,3] concatenate(a, i, b), dimensions={1}
  ROOT g = f32[8] gather(x, aib), offset_dims={}, collapsed_slice_dims={0,1,2}, start_index_map={0,1,2}, index_vector_dim=1, slice_sizes={1,1,1}
)";
  EXPECT_THAT(Read(EntryModule(text)), HasSubstr("gather(%x, %aib)"));
}

}  // namespace
}  // namespace shardcall
