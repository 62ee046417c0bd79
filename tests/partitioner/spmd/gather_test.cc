// SPDX-License-Identifier: Apache-2.0
// Gather with sharded indexed, batch and offset dimensions, indices out of
// bounds, batching dimensions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/program_family.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

// Random s32 inputs are 0 to 7, so A = 8 stays in bounds and A = 5 does not.
const std::vector<Sizes> kSizes = {{{'A', 8}, {'B', 4}, {'C', 6}},
                                   {{'A', 10}, {'B', 3}, {'C', 5}},
                                   {{'A', 5}, {'B', 7}, {'C', 4}},
                                   {{'A', 1}, {'B', 2}, {'C', 3}}};

// The rows of a table of `type` that indices of `index` name.
std::string LookUp(const std::string& type, const std::string& index) {
  return absl::StrReplaceAll(R"(
  table = TYPE[@A,@B] parameter(0)<0:2>
  ids = INDEX[@C] parameter(1)<1:1>
  ROOT r = TYPE[@C,@B] gather(table, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,@B}<2:2>
)",
                             {{"TYPE", type}, {"INDEX", index}});
}

TEST(Gather, RowsOfATable) {
  VerifyFamily(
      {.text = LookUp("f32", "s32"), .sizes = kSizes, .max_cases = 800, .no_fallback = true});
}

// What one shard gives the others is zero, which f8e8m0fnu does not have.
TEST(Gather, RowsOfATypeWithoutAZero) {
  VerifyFamily({.text = LookUp("f8e8m0fnu", "s32"), .sizes = kSizes, .max_cases = 120});
}

TEST(Gather, NegativeAndLargeIndicesAreClampedOnce) {
  VerifyFamily({.text = R"(
  table = s32[@A,@B] parameter(0)<0:2>
  ids = s32[@C,1] parameter(1)<1:2>
  k = s32[] constant(5)
  ks = s32[@C,1] broadcast(k), dimensions={}
  two = s32[] constant(3)
  twos = s32[@C,1] broadcast(two), dimensions={}
  low = s32[@C,1] subtract(ids, ks)
  wide = s32[@C,1] multiply(low, twos)
  ROOT r = s32[@C,@B] gather(table, wide), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,@B}<2:2>
)",
                .sizes = kSizes,
                .max_cases = 400,
                .no_fallback = true});
}

TEST(Gather, NarrowIndexTypesDoNotWrapInTheShift) {
  for (const char* type : {"u8", "s8", "u32", "s64"}) {
    SCOPED_TRACE(type);
    VerifyFamily(
        {.text = LookUp("f32", type), .sizes = kSizes, .max_cases = 60, .no_fallback = true});
  }
}

// A row comes from one device, and its sum with the others' zeros keeps the sign of its own.
TEST(Gather, RowsOfMinusZeroKeepTheirSign) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  ids = s32[@C,1] parameter(1)<1:2>
  zero = f32[] constant(0)
  zeros = f32[@A,@B] broadcast(zero), dimensions={}
  table = f32[@A,@B] multiply(x, zeros)
  rows = f32[@C,@B] gather(table, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,@B}<2:2>
  one = f32[] constant(1)
  ones = f32[@C,@B] broadcast(one), dimensions={}
  ROOT r = f32[@C,@B] divide(ones, rows)
)",
                .sizes = kSizes,
                .max_cases = 200});
}

// `x[arange(n), ids]`, whose indices JAX makes non-negative first: one row of the operand for each
// row of the indices. Nothing is sent where both are sharded alike.
constexpr char kRowByRow[] = R"(
  table = f32[@A,@B,@C] parameter(0)<0:3>
  ids = s32[@A,1] parameter(1)<1:2>
  rows = s32[@A] iota(), iota_dimension=0
  zero = s32[] constant(0)
  zeros = s32[@A] broadcast(zero), dimensions={}
  below = pred[@A] compare(rows, zeros), direction=LT
  size = s32[] constant(@A)
  sizes = s32[@A] broadcast(size), dimensions={}
  wrapped = s32[@A] add(rows, sizes)
  row = s32[@A] select(below, wrapped, rows)
  column = s32[@A,1] reshape(row)
  both = s32[@A,2] concatenate(column, ids), dimensions={1}
  ROOT r = f32[@A,@C] gather(table, both), offset_dims={1}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1,@C}<2:2>
)";

TEST(Gather, RowByRow) { VerifyFamily({.text = kRowByRow, .sizes = kSizes, .max_cases = 400}); }

TEST(Gather, RowByRowSendsNothingWhereRowsAndIndicesAreShardedAlike) {
  const std::string text = absl::StrReplaceAll(
      kRowByRow,
      {{"parameter(0)<0:3>", "parameter(0), sharding={devices=[8,1,1]<=[8]}"},
       {"parameter(1)<1:2>", "parameter(1), sharding={devices=[8,1]<=[8]}"},
       {"slice_sizes={1,1,@C}<2:2>", "slice_sizes={1,1,6}, sharding={devices=[8,1]<=[8]}"},
       {"@A", "16"},
       {"@B", "4"},
       {"@C", "6"}});
  const std::string module =
      absl::StrCat("HloModule m, num_partitions=8\nENTRY main {", text, "}\n");
  EXPECT_EQ(WhyNotEqual(module, {}), "");
  const auto program = PartitionText(module, {});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(LocalText(**program), testing::Not(testing::ContainsRegex("all-|permute")));
}

TEST(Gather, TwoIndexedDimensions) {
  VerifyFamily({.text = R"(
  table = f32[@A,@B] parameter(0)<0:2>
  ids = s32[@C,2] parameter(1)<1:2>
  ROOT r = f32[@C] gather(table, ids), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={1,0}, index_vector_dim=1, slice_sizes={1,1}<2:1>
)",
                .sizes = kSizes,
                .max_cases = 500});
}

TEST(Gather, IndexVectorFirst) {
  VerifyFamily({.text = R"(
  table = f32[@A,@B,2] parameter(0)<0:3>
  ids = s32[2,@C] parameter(1)<1:2>
  ROOT r = f32[2,@C] gather(table, ids), offset_dims={0}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=0, slice_sizes={1,1,2}<2:2>
)",
                .sizes = kSizes,
                .max_cases = 300});
}

TEST(Gather, SlicesLongerThanOne) {
  VerifyFamily({.text = R"(
  table = f32[@(A+2),@B] parameter(0)<0:2>
  ids = s32[@C,1] parameter(1)<1:2>
  ROOT r = f32[@C,2,@B] gather(table, ids), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={2,@B}<2:3>
)",
                .sizes = kSizes,
                .max_cases = 300});
}

TEST(Gather, BatchingDimensionsGoTogether) {
  VerifyFamily({.text = R"(
  table = f32[@C,@A,@B] parameter(0)<0:3>
  ids = s32[@C,3,1] parameter(1)<1:3>
  ROOT r = f32[@C,3,@B] gather(table, ids), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,@B}<2:3>
)",
                .sizes = kSizes,
                .max_cases = 400,
                .no_fallback = true});
}

TEST(Gather, PartOfAnOffsetDimension) {
  VerifyFamily({.text = R"(
  table = f32[@A,@(B+1)] parameter(0)<0:2>
  ids = s32[@C] parameter(1)<1:1>
  ROOT r = f32[@C,@B] gather(table, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,@B}<2:2>
)",
                .sizes = kSizes,
                .max_cases = 300,
                .no_fallback = true});
}

// x[jnp.arange(1, .., 2)] of JAX, and backwards: slices.
TEST(Gather, RowsOfTheSameDistance) {
  for (const char* rows : {"constant({1, 3, 5, 7})", "constant({6, 4, 2, 0})"}) {
    VerifyFamily({.text = absl::StrCat(R"(
  x = f32[@A,@B] parameter(0)<0:2>
  i = s32[4] )",
                                       rows, R"(
  ROOT r = f32[@B,4] gather(x, i), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,@B}<1:2>
)"),
                  .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 3}}},
                  .max_cases = 150,
                  .no_fallback = true});
  }
}

}  // namespace
}  // namespace shardcall
