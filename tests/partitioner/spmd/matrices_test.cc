// SPDX-License-Identifier: Apache-2.0
// Factors of matrices whose rows or columns are sharded, and systems with them, against one device,
// and what they send. Matrices have entries of 0, 1 and -1 (and i), so that results are exact, and
// NaN in what is not to be read.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/api/report.h"
#include "tests/partitioner/spmd/plan_testing.h"

namespace shardcall {
namespace {

using testing::IsEmpty;

// With T[ for the type, and # for @A.
std::string Filled(absl::string_view text, absl::string_view type) {
  return absl::StrReplaceAll(text, {{"T[", absl::StrCat(type, "[")}, {"#", "@A"}});
}

// Parameters p and q, and what matrices are made of: entries of their signs, the conjugates of
// these, and constants.
std::string Entries(absl::string_view type) {
  return Filled(absl::StrCat(R"(
  p = f64[#,#] parameter(0)
  q = f64[#,#] parameter(1)
  i = s32[#,#] iota(), iota_dimension=0
  j = s32[#,#] iota(), iota_dimension=1
  inside = pred[#,#] compare(i, j), direction=GT
  middle = pred[#,#] compare(i, j), direction=EQ
  re = f64[#,#] sign(p)
  im = f64[#,#] sign(q)
)",
                             type[0] == 'c' ? R"(
  minus = f64[#,#] negate(im)
  entries = T[#,#] complex(re, im)
  others = T[#,#] complex(re, minus)
  unread = T[] constant((nan, nan))
  one = T[] constant((1, 0))
  zero = T[] constant((0, 0))
)"
                                            : R"(
  entries = T[#,#] convert(re)
  others = T[#,#] convert(re)
  unread = T[] constant(nan)
  one = T[] constant(1)
  zero = T[] constant(0)
)",
                             R"(
  ones = T[#,#] broadcast(one), dimensions={}
  zeros = T[#,#] broadcast(zero), dimensions={}
  nans = T[#,#] broadcast(unread), dimensions={}
)"),
                type);
}

// `every`: entries that are not so many places from the diagonal, or a multiple of that, are zero,
// so that the numbers of a large system stay small.
std::string System(absl::string_view type, bool left, bool lower, bool unit,
                   absl::string_view transpose, int every = 1) {
  const auto boolean = [](bool x) { return x ? "true" : "false"; };
  const absl::string_view right = left ? "[#,@B]" : "[@B,#]";
  return Entries(type) +
         Filled(absl::StrCat("  order = pred[#,#] compare(i, j), direction=", lower ? "GT" : "LT",
                             R"(
  difference = s32[#,#] subtract(i, j)
  step = s32[] constant()",
                             every, R"()
  steps = s32[#,#] broadcast(step), dimensions={}
  rest = s32[#,#] remainder(difference, steps)
  none = s32[#,#] subtract(steps, steps)
  has = pred[#,#] compare(rest, none), direction=EQ
  some = T[#,#] select(has, entries, zeros)
  half = T[#,#] select(order, some, nans)
  a = T[#,#] select(middle, )",
                             unit ? "nans" : "ones", R"(, half)<0:2>
  r = f64)",
                             right, R"( parameter(2)
  b = T)",
                             right, type[0] == 'c' ? " complex(r, r)" : " convert(r)", R"(<1:2>
  ROOT x = T)",
                             right, " triangular-solve(a, b), left_side=", boolean(left),
                             ", lower=", boolean(lower), ", unit_diagonal=", boolean(unit),
                             ", transpose_a=", transpose, "<2:2>\n"),
                type);
}

const std::vector<Sizes> kMatrices = {
    {{'A', 24}, {'B', 3}}, {{'A', 12}, {'B', 4}}, {{'A', 10}, {'B', 1}}, {{'A', 1}, {'B', 2}}};

TEST(Matrices, SystemsOfEveryFormAreSolvedByBlocks) {
  for (const char* transpose : {"NO_TRANSPOSE", "TRANSPOSE"}) {
    for (bool left : {true, false}) {
      for (bool lower : {true, false}) {
        VerifyFamily({.text = System("f64", left, lower, lower == left, transpose),
                      .sizes = kMatrices,
                      .max_cases = 80});
      }
    }
  }
}

// Their blocks go from device to device in a tree.
TEST(Matrices, LargeSystemsAreSolvedByBlocks) {
  for (const char* transpose : {"NO_TRANSPOSE", "TRANSPOSE"}) {
    for (bool left : {true, false}) {
      VerifyFamily({.text = System("f64", left, true, true, transpose, 64),
                    .sizes = {{{'A', 256}, {'B', 32}}, {{'A', 250}, {'B', 40}}},
                    .meshes = {{{4, 2}}},
                    .max_cases = 20});
    }
  }
}

TEST(Matrices, ComplexSystemsAreSolvedByBlocks) {
  for (const char* transpose : {"ADJOINT", "TRANSPOSE"}) {
    for (bool left : {true, false}) {
      VerifyFamily({.text = System("c128", left, true, true, transpose),
                    .sizes = {{{'A', 24}, {'B', 3}}, {{'A', 7}, {'B', 2}}},
                    .max_cases = 60});
    }
  }
}

// A = L L^H with such an L.
std::string Factor(absl::string_view type, bool lower) {
  return Entries(type) + Filled(absl::StrCat(R"(
  below = T[#,#] select(inside, entries, zeros)
  l = T[#,#] select(middle, ones, below)
  conjugated = T[#,#] select(inside, others, zeros)
  h = T[#,#] select(middle, ones, conjugated)
  whole = T[#,#] dot(l, h), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  read = pred[#,#] compare(i, j), direction=)",
                                             lower ? "GE" : "LE", R"(
  a = T[#,#] select(read, whole, nans)<0:2>
  c = T[#,#] cholesky(a), lower=)",
                                             lower ? "true" : "false", R"(
  ROOT f = T[#,#] select(read, c, zeros)<1:2>
)"),
                                type);
}

TEST(Matrices, LargeOnesAreFactoredByBlocks) {
  for (bool lower : {true, false}) {
    VerifyFamily({.text = Factor("f64", lower),
                  .sizes = {{{'A', 256}}, {{'A', 230}}},
                  .meshes = {{{4, 2}}},
                  .max_cases = 20});
  }
}

TEST(Matrices, AreFactoredByBlocks) {
  for (bool lower : {true, false}) {
    VerifyFamily({.text = Factor("f64", lower), .sizes = kMatrices, .max_cases = 150});
    VerifyFamily({.text = Factor("c128", lower),
                  .sizes = {{{'A', 24}, {'B', 3}}, {{'A', 7}, {'B', 2}}},
                  .max_cases = 80});
  }
}

constexpr int64_t kN = 4096, kShards = 8;

TEST(Matrices, AFactorSendsASixthOfTheMatrix) {
  for (bool lower : {true, false}) {
    const std::string sharding = lower ? "{devices=[8,1]<=[8]}" : "{devices=[1,8]<=[8]}";
    const auto p = Done(absl::StrCat("  a = f32[4096,4096] parameter(0), sharding=", sharding,
                                     "\n  ROOT c = f32[4096,4096] cholesky(a), lower=",
                                     lower ? "true" : "false", ", sharding=", sharding, "\n"),
                        kShards);
    // In turn k, k + 1 blocks go to 7 - k devices.
    const double block = kN / kShards * (kN / kShards) * 4;
    EXPECT_EQ(TotalBytesMoved(p->local),
              block * (1 * 7 + 2 * 6 + 3 * 5 + 4 * 4 + 5 * 3 + 6 * 2 + 7) / 8);
    EXPECT_THAT(p->plan.fallbacks, IsEmpty());
  }
}

// The matrix of 64 MB is not sent, whichever way it is read.
TEST(Matrices, ASystemSendsWhatItsRightSideHas) {
  for (const char* transpose : {"NO_TRANSPOSE", "TRANSPOSE"}) {
    for (const char* matrix : {"{devices=[8,1]<=[8]}", "{devices=[1,8]<=[8]}"}) {
      const auto p = Done(absl::StrCat("  a = f32[4096,4096] parameter(0), sharding=", matrix, R"(
  b = f32[4096,16] parameter(1), sharding={devices=[8,1]<=[8]}
  ROOT x = f32[4096,16] triangular-solve(a, b), left_side=true, lower=true, unit_diagonal=false, transpose_a=)",
                                       transpose, ", sharding={devices=[8,1]<=[8]}\n"),
                          kShards);
      EXPECT_LE(TotalBytesMoved(p->local), 2 * kN * 16 * 4);
      EXPECT_THAT(p->plan.fallbacks, IsEmpty());
    }
  }
}

}  // namespace
}  // namespace shardcall
