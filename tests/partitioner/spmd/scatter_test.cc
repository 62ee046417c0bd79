// SPDX-License-Identifier: Apache-2.0
// Scatter with sharded indexed dimensions, updates and windows, indices out of
// bounds, several operands, and computations that are no monoid.
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {{{'A', 8}, {'B', 4}, {'C', 6}},
                                   {{'A', 10}, {'B', 3}, {'C', 5}},
                                   {{'A', 5}, {'B', 7}, {'C', 4}},
                                   {{'A', 1}, {'B', 2}, {'C', 3}}};

std::string RowScatter(const std::string& type, const std::string& body) {
  return absl::StrReplaceAll(R"(
f {
  a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  BODY
}

ENTRY main {
  x = TYPE[@A,@B] parameter(0)<0:2>
  ids = s32[@C,1] parameter(1)<1:2>
  u = TYPE[@C,@B] parameter(2)<2:2>
  ROOT r = TYPE[@A,@B] scatter(x, ids, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f<3:2>
}
)",
                             {{"TYPE", type}, {"BODY", body}});
}

TEST(Scatter, AddsRowsUnderEverySharding) {
  VerifyFamily({.text = RowScatter("f32", "ROOT r = f32[] add(a, b)"),
                .sizes = kSizes,
                .max_cases = 800,
                .no_fallback = true});
}

TEST(Scatter, OtherMonoids) {
  for (const char* op : {"maximum", "minimum", "multiply", "xor"}) {
    SCOPED_TRACE(op);
    VerifyFamily({.text = RowScatter("s32", std::string("ROOT r = s32[] ") + op + "(a, b)"),
                  .sizes = kSizes,
                  .max_cases = 120,
                  .no_fallback = true});
  }
}

// Windows of one row that stay in the updates, in place of inserted dimensions.
TEST(Scatter, AddsWindowsOfOneRow) {
  VerifyFamily({.text = R"(
f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b)
}

ENTRY main {
  x = s32[@A,@B] parameter(0)<0:2>
  ids = s32[@C,1] parameter(1)<1:2>
  u = s32[@C,1,@B] parameter(2)
  ROOT r = s32[@A,@B] scatter(x, ids, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f<2:2>
}
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

// The last write counts; which one that is must not depend on the shards.
TEST(Scatter, OverwritingKeepsTheOrderOfUpdates) {
  VerifyFamily(
      {.text = RowScatter("f32", "ROOT r = f32[] copy(b)"), .sizes = kSizes, .max_cases = 300});
}

TEST(Scatter, PartOfAWindowDimension) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[@A,@(B+2)] parameter(0)<0:2>
  ids = s32[@C,1] parameter(1)<1:2>
  u = f32[@C,@B] parameter(2)<2:2>
  ROOT r = f32[@A,@(B+2)] scatter(x, ids, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f<3:2>
}
)",
                .sizes = kSizes,
                .max_cases = 300});
}

TEST(Scatter, CustomComputation) {
  VerifyFamily({.text = RowScatter("s32", "c = s32[] add(a, a)\n  ROOT r = s32[] subtract(c, b)"),
                .sizes = kSizes,
                .max_cases = 300});
}

TEST(Scatter, NegativeAndLargeIndicesAreSkipped) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  ids = s32[@C,1] parameter(1)<1:2>
  u = f32[@C,@B] parameter(2)<2:2>
  k = s32[] constant(4)
  ks = s32[@C,1] broadcast(k), dimensions={}
  low = s32[@C,1] subtract(ids, ks)
  wide = s32[@C,1] multiply(low, ks)
  ROOT r = f32[@A,@B] scatter(x, wide, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f<3:2>
}
)",
                .sizes = kSizes,
                .max_cases = 300,
                .no_fallback = true});
}

TEST(Scatter, PointsWithTwoIndices) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  ids = s32[@C,2] parameter(1)<1:2>
  u = f32[@C] parameter(2)<2:1>
  ROOT r = f32[@A,@B] scatter(x, ids, u), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=f<3:2>
}
)",
                .sizes = kSizes,
                .max_cases = 400});
}

TEST(Scatter, WindowsThatAreNotInserted) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[@(A+2),@B] parameter(0)<0:2>
  ids = s32[@C,1] parameter(1)<1:2>
  u = f32[@C,2,@B] parameter(2)<2:3>
  ROOT r = f32[@(A+2),@B] scatter(x, ids, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f<3:2>
}
)",
                .sizes = kSizes,
                .max_cases = 300});
}

TEST(Scatter, BatchingDimensionsGoTogether) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[@C,@A,@B] parameter(0)<0:3>
  ids = s32[@C,3,1] parameter(1)<1:3>
  u = f32[@C,3,@B] parameter(2)<2:3>
  ROOT r = f32[@C,@A,@B] scatter(x, ids, u), update_window_dims={2}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=f<3:3>
}
)",
                .sizes = kSizes,
                .max_cases = 400,
                .no_fallback = true});
}

// The gradient of `x[arange(n), ids]`.
TEST(Scatter, RowByRow) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[@C,@A,@B] parameter(0)<0:3>
  ids = s32[@C,1] parameter(1)<1:2>
  u = f32[@C,@B] parameter(2)<2:2>
  rows = s32[@C,1] iota(), iota_dimension=0
  both = s32[@C,2] concatenate(rows, ids), dimensions={1}
  ROOT r = f32[@C,@A,@B] scatter(x, both, u), update_window_dims={1}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=f<3:3>
}
)",
                .sizes = kSizes,
                .max_cases = 400,
                .no_fallback = true});
}

TEST(Scatter, TwoOperandsAtOnce) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = s32[] parameter(3)
  s = f32[] add(a, c)
  t = s32[] add(b, d)
  ROOT r = (f32[], s32[]) tuple(s, t)
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  y = s32[@A,@B] parameter(1)
  ids = s32[@C,1] parameter(2)<1:2>
  u = f32[@C,@B] parameter(3)<2:2>
  v = s32[@C,@B] parameter(4)
  ROOT r = (f32[@A,@B], s32[@A,@B]) scatter(x, y, ids, u, v), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f
}
)",
                .sizes = kSizes,
                .max_cases = 200});
}

TEST(Scatter, IndicesMayBeConcatenatedOfEmptyVectors) {
  VerifyFamily({.text = R"(
f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] multiply(a, b)
}
ENTRY main {
  x = s32[@A,5] parameter(0)<0:2>
  u = s32[@A,5] parameter(1)<1:2>
  none = s32[0] constant({})
  indices = s32[0] concatenate(none, none), dimensions={0}
  ROOT s = s32[@A,5] scatter(x, indices, u), update_window_dims={0,1}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=0, to_apply=f
}
)",
                .sizes = {{{'A', 8}}, {{'A', 3}}}});
}

// x.at[::2].add(u) and .set(u) of JAX. An update of -0 keeps a sum of -0.
TEST(Scatter, ToRowsOfTheSameDistance) {
  const std::pair<const char*, const char*> kForms[] = {{"r = f32[] add(a, b)", "-0"},
                                                        {"r = f32[] add(a, b)", "1"},
                                                        {"r = f32[] maximum(a, b)", "1"},
                                                        {"r = f32[] copy(b)", "1"}};
  for (const auto& [root, factor] : kForms) {
    VerifyFamily({.text = absl::StrCat(R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT )",
                                       root, R"(
}

ENTRY main {
  p = f32[@(A*2),@B] parameter(0)
  c = f32[] constant()",
                                       factor, R"()
  factors = f32[@(A*2),@B] broadcast(c), dimensions={}
  x = f32[@(A*2),@B] multiply(p, factors)<0:2>
  u = f32[@B,@A] parameter(1)<1:2>
  n = s32[@A] iota(), iota_dimension=0
  two = s32[] constant(2)
  twos = s32[@A] broadcast(two), dimensions={}
  j = s32[@A] multiply(n, twos)
  ROOT r = f32[@(A*2),@B] scatter(x, j, u), update_window_dims={0}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f<2:2>
}
)"),
                  .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 5}, {'B', 3}}},
                  .max_cases = 200});
  }
}

// x.at[1:-1:2, 2:].set(u) of JAX, and the gather of the same elements.
TEST(Scatter, ToRowsOfTheSameDistanceAndAWindowOfEach) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  ROOT b = f32[] parameter(1)
}

ENTRY main {
  x = f32[@(A*2+1),@(B+2)] parameter(0)<0:2>
  u = f32[@A,@B] parameter(1)<1:2>
  n = s32[@A,1] iota(), iota_dimension=0
  two = s32[] constant(2)
  twos = s32[@A,1] broadcast(two), dimensions={}
  m = s32[@A,1] multiply(n, twos)
  one = s32[] constant(1)
  ones = s32[@A,1] broadcast(one), dimensions={}
  rows = s32[@A,1] add(m, ones)
  i = s32[@A,2] concatenate(rows, twos), dimensions={1}
  s = f32[@(A*2+1),@(B+2)] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=f
  g = f32[@A,@B] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,@B}
  ROOT t = (f32[@(A*2+1),@(B+2)], f32[@A,@B]) tuple(s, g)
}
)",
                .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 5}, {'B', 3}}},
                .max_cases = 200});
}

TEST(Scatter, ToAGridOfTwoDimensions) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[@(A*2),@(B*3)] parameter(0)<0:2>
  u = f32[@B,@A] parameter(1)<1:2>
  n = s32[@A] iota(), iota_dimension=0
  two = s32[] constant(2)
  twos = s32[@A] broadcast(two), dimensions={}
  rows = s32[@A] multiply(n, twos)
  m = s32[@B] iota(), iota_dimension=0
  three = s32[] constant(3)
  threes = s32[@B] broadcast(three), dimensions={}
  columns = s32[@B] multiply(m, threes)
  r2 = s32[@B,@A,1] broadcast(rows), dimensions={1}
  c2 = s32[@B,@A,1] broadcast(columns), dimensions={0}
  i = s32[@B,@A,2] concatenate(r2, c2), dimensions={2}
  ROOT s = f32[@(A*2),@(B*3)] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=2, to_apply=f<2:2>
}
)",
                .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 5}, {'B', 3}}},
                .max_cases = 200});
}

}  // namespace
}  // namespace shardcall
