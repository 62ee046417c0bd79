// SPDX-License-Identifier: Apache-2.0
// Factors of matrices whose rows or columns are sharded, and systems with them, against one device,
// and what they send. Matrices have entries of 0, 1 and -1 (and i), so that results are exact, and
// NaN in what is not to be read. Zeros are made positive: LAPACK's may have another sign.
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

// As LAPACK's targets have letters.
int Code(char letter) { return letter; }

struct SystemForm {
  absl::string_view type = "f64";
  bool left = true, lower = true, unit = true;
  absl::string_view transpose = "NO_TRANSPOSE";
  // Entries that are not so many places from the diagonal, or a multiple of that, are zero, so that
  // the numbers of a large system stay small.
  int every = 1;
  bool as_call = false;  // of LAPACK's target
};

std::string SolveText(const SystemForm& form, absl::string_view right) {
  const auto boolean = [](bool x) { return x ? "true" : "false"; };
  if (form.as_call) {
    const char letter = form.transpose == "ADJOINT" ? 'C' : form.transpose[0];
    return absl::StrCat(
        "custom-call(a, b), custom_call_target=\"lapack_", form.type[0] == 'c' ? "z" : "d",
        "trsm_ffi\", api_version=API_VERSION_TYPED_FFI, operand_layout_constraints={T[#,#]{0,1}, T",
        right, "{0,1}}, backend_config={side = ", Code(form.left ? 'L' : 'R'),
        " : ui8, uplo = ", Code(form.lower ? 'L' : 'U'), " : ui8, trans_x = ", Code(letter),
        " : ui8, diag = ", Code(form.unit ? 'U' : 'N'), " : ui8}");
  }
  return absl::StrCat("triangular-solve(a, b), left_side=", boolean(form.left),
                      ", lower=", boolean(form.lower), ", unit_diagonal=", boolean(form.unit),
                      ", transpose_a=", form.transpose);
}

std::string System(const SystemForm& form) {
  const auto [type, left, lower, unit, transpose, every, as_call] = form;
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
  x = T)",
                             right, form.as_call ? "{0,1} " : " ", SolveText(form, right), R"(
  nothing = T)",
                             right, R"( subtract(b, b)
  ROOT y = T)",
                             right, " add(x, nothing)<2:2>\n"),
                type);
}

constexpr int64_t kN = 4096, kShards = 8;

const std::vector<Sizes> kMatrices = {
    {{'A', 24}, {'B', 3}}, {{'A', 12}, {'B', 4}}, {{'A', 10}, {'B', 1}}, {{'A', 1}, {'B', 2}}};

TEST(Matrices, SystemsOfEveryFormAreSolvedByBlocks) {
  for (const char* transpose : {"NO_TRANSPOSE", "TRANSPOSE"}) {
    for (bool left : {true, false}) {
      for (bool lower : {true, false}) {
        VerifyFamily(
            {.text = System(
                 {.left = left, .lower = lower, .unit = lower == left, .transpose = transpose}),
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
      VerifyFamily({.text = System({.left = left, .transpose = transpose, .every = 64}),
                    .sizes = {{{'A', 256}, {'B', 32}}, {{'A', 250}, {'B', 40}}},
                    .meshes = {{{4, 2}}},
                    .max_cases = 12});
    }
  }
}

TEST(Matrices, ComplexSystemsAreSolvedByBlocks) {
  for (const char* transpose : {"ADJOINT", "TRANSPOSE"}) {
    for (bool left : {true, false}) {
      VerifyFamily({.text = System({.type = "c128", .left = left, .transpose = transpose}),
                    .sizes = {{{'A', 24}, {'B', 3}}, {{'A', 7}, {'B', 2}}},
                    .max_cases = 60});
    }
  }
}

// A = L L^H with such an L. What is not read is NaN, for a call what it is to keep.
std::string Factor(absl::string_view type, bool lower, bool as_call = false) {
  std::string op = absl::StrCat("  c = T[#,#] cholesky(a), lower=", lower ? "true" : "false");
  if (as_call) {
    op = absl::StrCat("  call = (T[#,#]{0,1}, s32[]) custom-call(a), custom_call_target=\"lapack_",
                      type[0] == 'c' ? "z" : "d",
                      "potrf_ffi\", api_version=API_VERSION_TYPED_FFI, "
                      "operand_layout_constraints={T[#,#]{0,1}}, backend_config={uplo = ",
                      Code(lower ? 'L' : 'U'),
                      " : ui8}\n  c = T[#,#] get-tuple-element(call), index=0");
  }
  return Entries(type) + Filled(absl::StrCat(R"(
  below = T[#,#] select(inside, entries, zeros)
  l = T[#,#] select(middle, ones, below)
  conjugated = T[#,#] select(inside, others, zeros)
  h = T[#,#] select(middle, ones, conjugated)
  whole = T[#,#] dot(l, h), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  read = pred[#,#] compare(i, j), direction=)",
                                             lower ? "GE" : "LE", R"(
  others_read = pred[#,#] not(read)
  a = T[#,#] select(read, whole, )",
                                             as_call ? "entries" : "nans", ")<0:2>\n", op, R"(
  positive = T[#,#] add(c, zeros)
  all = pred[#,#] or(read, )",
                                             as_call ? "others_read" : "read", R"()
  ROOT f = T[#,#] select(all, positive, zeros)<1:2>
)"),
                                type);
}

TEST(Matrices, LargeOnesAreFactoredByBlocks) {
  for (bool lower : {true, false}) {
    VerifyFamily({.text = Factor("f64", lower),
                  .sizes = {{{'A', 256}}, {{'A', 230}}},
                  .meshes = {{{4, 2}}},
                  .max_cases = 10});
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

TEST(Matrices, CallsOfLapackTakeThemByBlocks) {
  for (const char* type : {"f64", "c128"}) {
    for (bool lower : {true, false}) {
      VerifyFamily({.text = Factor(type, lower, true),
                    .sizes = {{{'A', 24}}, {{'A', 10}}},
                    .max_cases = 32});
      for (const absl::string_view transpose : {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}) {
        VerifyFamily({.text = System({.type = type,
                                      .left = lower == (transpose[0] == 'T'),
                                      .lower = lower,
                                      .unit = !lower,
                                      .transpose = transpose,
                                      .as_call = true}),
                      .sizes = {{{'A', 24}, {'B', 3}}, {{'A', 10}, {'B', 2}}},
                      .max_cases = 20});
      }
    }
  }
}

TEST(Matrices, RightSidesOfCallsAreSharded) {
  for (const bool left : {true, false}) {
    const char* const right = left ? "f64[64,32]{0,1}" : "f64[32,64]{0,1}";
    const char* const sharding = left ? "{devices=[1,8]<=[8]}" : "{devices=[8,1]<=[8]}";
    const auto p = Done(
        absl::StrCat(
            "  a = f64[64,64] parameter(0)\n  b = ", right, " parameter(1), sharding=", sharding,
            "\n  ROOT x = ", right,
            " custom-call(a, b), custom_call_target=\"lapack_dtrsm_ffi\", "
            "operand_layout_constraints={f64[64,64]{0,1}, ",
            right,
            "}, api_version=API_VERSION_TYPED_FFI, backend_config={side = ", Code(left ? 'L' : 'R'),
            " : ui8, uplo = 76 : ui8, trans_x = 78 : ui8, diag = 85 : ui8}, sharding=", sharding,
            "\n"),
        kShards);
    EXPECT_EQ(TotalBytesMoved(p->local), 0);
  }
}

// Strategies for some targets are asked about the calls of all.
TEST(Matrices, CallsWithoutOperandsAreNoFactors) {
  TargetRegistry targets;
  RuleText rule;
  rule.rule = " -> a b";
  ASSERT_TRUE(targets.RegisterRule("made", rule).ok());
  TextOptions options;
  options.targets = &targets;
  const auto p = PartitionText(R"(HloModule m, num_partitions=8

ENTRY main {
  ROOT c = f32[16,4] custom-call(), custom_call_target="made", sharding={devices=[8,1]<=[8]}
}
)",
                               options);
  EXPECT_TRUE(p.ok()) << p.status();
}

// LAPACK's status is the order of the first minor that is not positive definite.
TEST(Matrices, TheStatusOfAFactorIsThatOfTheWhole) {
  for (int at : {0, 1, 6, 13, 21, 22}) {
    const std::string text = absl::StrCat(R"(HloModule m, num_partitions=4

ENTRY main {
  p = f64[2,22,22] parameter(0), sharding={devices=[1,4,1]<=[4]}
  i = s32[2,22,22] iota(), iota_dimension=1
  j = s32[2,22,22] iota(), iota_dimension=2
  at = s32[] constant()",
                                          at, R"()
  ats = s32[2,22,22] broadcast(at), dimensions={}
  middle = pred[2,22,22] compare(i, j), direction=EQ
  bad = pred[2,22,22] compare(i, ats), direction=GE
  one = f64[] constant(1)
  ones = f64[2,22,22] broadcast(one), dimensions={}
  minus = f64[2,22,22] negate(ones)
  diagonal = f64[2,22,22] select(bad, minus, ones)
  zeros = f64[2,22,22] subtract(p, p)
  a = f64[2,22,22] select(middle, diagonal, zeros), sharding={devices=[1,4,1]<=[4]}
  c = (f64[2,22,22]{1,2,0}, s32[2]) custom-call(a), custom_call_target="lapack_dpotrf_ffi",
    operand_layout_constraints={f64[2,22,22]{1,2,0}},
    api_version=API_VERSION_TYPED_FFI, backend_config={uplo = 76 : ui8},
    sharding={{devices=[1,4,1]<=[4]}, {replicated}}
  ROOT s = s32[2] get-tuple-element(c), index=1
}
)");
    TextOptions options;
    options.spmd.cost.latency = 1e-15;
    EXPECT_EQ(WhyNotEqual(text, options), "");
    const auto p = PartitionText(text, options);
    ASSERT_TRUE(p.ok()) << p.status();
    EXPECT_EQ(CountOpcode(**p, Opcode::kTriangularSolve), 3);
  }
}

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
