// SPDX-License-Identifier: Apache-2.0
// dot, convolution, reductions, windows, sort, top-k, random bits, fft, linear
// algebra.
#include <cmath>
#include <limits>

#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "tests/partitioner/runtime/run_text.h"

namespace shardcall {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

TEST(Dot, BatchAndContractingDimensionsInAnyPlace) {
  // lhs [k, b, m], rhs [n, k, b] -> [b, m, n].
  EXPECT_THAT(Eval("a = s32[2,2,1] constant({ { {1}, {2} }, { {3}, {4} } })\n"
                   "b = s32[1,2,2] constant({ { {5, 6}, {7, 8} } })\n"
                   "ROOT r = s32[2,1,1] dot(a, b), lhs_batch_dims={1}, lhs_contracting_dims={0}, "
                   "rhs_batch_dims={2}, rhs_contracting_dims={1}"),
              ElementsAre(1 * 5 + 3 * 7, 2 * 6 + 4 * 8));
}

TEST(Dot, NarrowFloatsAreSummedWide) {
  // 256 + 1 + 1 is 258; rounding in between would leave 256.
  EXPECT_THAT(Eval("a = bf16[3] constant({256, 1, 1})\nb = bf16[3] constant({1, 1, 1})\n"
                   "ROOT r = bf16[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
              ElementsAre(258));
  EXPECT_THAT(Eval("a = s8[2] constant({100, 100})\nb = s8[2] constant({100, 100})\n"
                   "ROOT r = s32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
              ElementsAre(20000));
}

TEST(Dot, NothingToContractGivesZero) {
  EXPECT_THAT(
      Eval("a = f32[2,0] constant({ {}, {} })\nb = f32[0,1] constant({ })\n"
           "ROOT r = f32[2,1] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
      ElementsAre(0, 0));
}

// As XLA has it, which multiplies: nothing is added up.
TEST(Dot, ProductsThatAreNotSummedKeepTheSignOfZero) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const char* type : {"f32", "f64", "bf16", "f16"}) {
    EXPECT_THAT(Eval(absl::StrReplaceAll(
                    "a = T[2] constant({0, -3})\nb = T[2] constant({-2, 0})\n"
                    "d = T[2,2] dot(a, b), lhs_contracting_dims={}, rhs_contracting_dims={}\n"
                    "one = T[] constant(1)\nones = T[2,2] broadcast(one), dimensions={}\n"
                    "ROOT r = T[2,2] divide(ones, d)",
                    {{"T[", absl::StrCat(type, "[")}})),
                ElementsAre(-kInf, kInf, testing::DoubleNear(1.0 / 6, 1e-3), -kInf))
        << type;
  }
}

constexpr char kAddF[] =
    "add {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b)\n}\n";

TEST(Reduce, TheSameElementsGiveTheSameSumWhereverTheDimensionLies) {
  std::vector<float> x(37 * 5), y(37 * 5);
  for (int i = 0; i < 37; ++i) {
    for (int j = 0; j < 5; ++j)
      x[i * 5 + j] = y[j * 37 + i] = 1.0f / static_cast<float>(1 + i * 7 + j);
  }
  const std::vector<double> columns =
      Eval(absl::StrCat(kAddF,
                        "ENTRY e {\n p = f32[37,5] parameter(0)\n z = f32[] constant(0)\n"
                        " ROOT r = f32[5] reduce(p, z), dimensions={0}, to_apply=add\n}\n"),
           {F32({37, 5}, x)});
  const std::vector<double> rows =
      Eval(absl::StrCat(kAddF,
                        "ENTRY e {\n p = f32[5,37] parameter(0)\n z = f32[] constant(0)\n"
                        " ROOT r = f32[5] reduce(p, z), dimensions={1}, to_apply=add\n}\n"),
           {F32({5, 37}, y)});
  EXPECT_EQ(columns, rows);
}

TEST(Reduce, OfNothingIsTheInitialValueWithItsSign) {
  const auto r =
      RunText(absl::StrCat(kAddF,
                           "ENTRY e {\n p = f32[0,2] constant({ })\n z = f32[] constant(-0.0)\n"
                           " ROOT r = f32[2] reduce(p, z), dimensions={0}, to_apply=add\n}\n"));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_TRUE(std::signbit((*r)[0].data<float>()[0]));
}

TEST(Reduce, OfNegativeZerosIsOneInBothPartsOfAComplexNumber) {
  const auto r = RunText(
      "add {\n a = c64[] parameter(0)\n b = c64[] parameter(1)\n ROOT s = c64[] add(a, b)\n}\n"
      "ENTRY e {\n p = c64[2,1] constant({ {(-0.0, -0.0)}, {(-0.0, -0.0)} })\n"
      " z = c64[] constant((-0.0, -0.0))\n"
      " ROOT r = c64[1] reduce(p, z), dimensions={0}, to_apply=add\n}\n");
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_TRUE(std::signbit((*r)[0].data<float>()[0]));
  EXPECT_TRUE(std::signbit((*r)[0].data<float>()[1]));
}

TEST(Reduce, SeveralInputsWithAnyComputation) {
  const auto r = RunText(
      "am {\n a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n"
      " j = s32[] parameter(3)\n g = pred[] compare(a, b), direction=GE\n"
      " v = f32[] select(g, a, b)\n k = s32[] select(g, i, j)\n"
      " ROOT t = (f32[], s32[]) tuple(v, k)\n}\n"
      "ENTRY e {\n p = f32[2,3] constant({ {1, 7, 7}, {5, 2, 4} })\n"
      " q = s32[2,3] iota(), iota_dimension=1\n z = f32[] constant(-inf)\n y = s32[] constant(-1)\n"
      " ROOT r = (f32[2], s32[2]) reduce(p, q, z, y), dimensions={1}, to_apply=am\n}\n");
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(Numbers((*r)[0]), ElementsAre(7, 5));
  EXPECT_THAT(Numbers((*r)[1]), ElementsAre(1, 0));
}

TEST(ReduceWindow, CumulativeSumsRunBothWays) {
  const char* kText =
      "ENTRY e {\n p = f32[4] constant({1, 2, 3, 4})\n z = f32[] constant(0)\n"
      " ROOT r = f32[4] reduce-window(p, z), window={size=4 pad=%s}, to_apply=add\n}\n";
  std::string forward = kText, backward = kText;
  forward.replace(forward.find("%s"), 2, "3_0");
  backward.replace(backward.find("%s"), 2, "0_3");
  EXPECT_THAT(Eval(absl::StrCat(kAddF, forward)), ElementsAre(1, 3, 6, 10));
  EXPECT_THAT(Eval(absl::StrCat(kAddF, backward)), ElementsAre(10, 9, 7, 4));
}

TEST(ReduceWindow, DilationsAndNegativePadding) {
  EXPECT_THAT(
      Eval(absl::StrCat(kAddF,
                        "ENTRY e {\n p = f32[4] constant({1, 2, 3, 4})\n"
                        " z = f32[] constant(0)\n ROOT r = f32[4] reduce-window(p, z), "
                        "window={size=2 pad=-1_0 lhs_dilate=2 rhs_dilate=2}, to_apply=add\n}\n")),
      ElementsAre(0, 5, 0, 7));
}

TEST(SelectAndScatter, SendsEachSourceToTheChosenElement) {
  EXPECT_THAT(Eval(absl::StrCat("ge {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
                                " ROOT r = pred[] compare(a, b), direction=GE\n}\n",
                                kAddF,
                                "ENTRY e {\n p = f32[4] constant({1, 3, 2, 0})\n"
                                " s = f32[3] constant({10, 20, 30})\n z = f32[] constant(0)\n"
                                " ROOT r = f32[4] select-and-scatter(p, s, z), window={size=2}, "
                                "select=ge, scatter=add\n}\n")),
              ElementsAre(0, 30, 30, 0));
}

TEST(Sort, IsStableAndCarriesOtherOperands) {
  const auto r = RunText(
      "lt {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n i = s32[] parameter(2)\n"
      " j = s32[] parameter(3)\n ROOT r = pred[] compare(a, b), direction=LT\n}\n"
      "ENTRY e {\n p = f32[5] constant({2, 1, 2, 1, 0})\n q = s32[5] iota(), iota_dimension=0\n"
      " ROOT r = (f32[5], s32[5]) sort(p, q), dimensions={0}, is_stable=true, to_apply=lt\n}\n");
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(Numbers((*r)[0]), ElementsAre(0, 1, 1, 2, 2));
  EXPECT_THAT(Numbers((*r)[1]), ElementsAre(4, 1, 3, 0, 2));
}

TEST(Sort, AComparatorThatIsNoOrderDoesNoHarm) {
  const auto r = RunText(
      "always {\n a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT r = pred[] "
      "constant(true)\n}\n"
      "ENTRY e {\n p = s32[100] iota(), iota_dimension=0\n"
      " ROOT r = s32[100] sort(p), dimensions={0}, to_apply=always\n}\n");
  ASSERT_TRUE(r.ok()) << r.status();
  std::vector<double> x = Numbers((*r)[0]);
  std::sort(x.begin(), x.end());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(x[i], i);  // a permutation
}

TEST(TopK, LargestFirstTiesByIndexNanOnTop) {
  const auto r = RunText(
      "p = f32[1,5] constant({ {1, 3, nan, 3, -inf} })\n"
      "ROOT r = (f32[1,3], s32[1,3]) topk(p), k=3, largest=true");
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(Numbers((*r)[1]), ElementsAre(2, 1, 3));
}

TEST(RngBitGenerator, GivesTheBitsAndStatesOfXla) {
  const char* kState = "s = u64[2] constant({1311768467463790320, 18446744073709551614})\n";
  auto r = RunText(absl::StrCat(kState,
                                "ROOT r = (u64[2], u32[6]) rng-bit-generator(s), "
                                "algorithm=rng_three_fry"));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ((*r)[0].data<uint64_t>()[1], 1);
  EXPECT_THAT(Numbers((*r)[1]),
              ElementsAre(1010520186, 1888741164, 2754706343, 569486026, 1593802813, 1289978105));
  r = RunText(absl::StrCat(kState,
                           "ROOT r = (u64[2], u32[6]) rng-bit-generator(s), "
                           "algorithm=rng_default"));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ((*r)[0].data<uint64_t>()[1], 0);
  EXPECT_THAT(Numbers((*r)[1]),
              ElementsAre(3151517439, 3080049825, 2645875639, 2972309415, 1480449822, 3015399692));
  r = RunText(
      "s = u64[3] constant({1311768467463790320, 18446744073709551614, 7})\n"
      "ROOT r = (u64[3], u8[7]) rng-bit-generator(s), algorithm=rng_philox");
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ((*r)[0].data<uint64_t>()[2], 8);  // the carry
  EXPECT_THAT(Numbers((*r)[1]), ElementsAre(208, 90, 208, 242, 227, 239, 178));
}

TEST(Convolution, DilatedPaddedAndGrouped) {
  EXPECT_THAT(Eval("x = f32[1,4,1] constant({ { {1}, {2}, {3}, {4} } })\n"
                   "k = f32[2,1,1] constant({ { {1} }, { {10} } })\n"
                   "ROOT r = f32[1,5,1] convolution(x, k), window={size=2 pad=0_1 lhs_dilate=2 "
                   "rhs_dilate=3}, dim_labels=b0f_0io->b0f"),
              ElementsAre(1, 30, 2, 40, 3));
  EXPECT_THAT(
      Eval("x = f32[1,2,2] constant({ { {1, 2}, {3, 4} } })\n"
           "k = f32[1,1,2] constant({ { {10, 100} } })\n"
           "ROOT r = f32[1,2,2] convolution(x, k), window={size=1}, dim_labels=b0f_0io->b0f, "
           "feature_group_count=2"),
      ElementsAre(10, 200, 30, 400));
}

TEST(Fft, AnyLengthAndBack) {
  const std::vector<double> r = Eval(
      "x = f32[7] constant({1, 2, 3, 4, 5, 6, 7})\n"
      "y = c64[4] fft(x), fft_type=RFFT, fft_length={7}\n"
      "ROOT r = f32[7] fft(y), fft_type=IRFFT, fft_length={7}");
  for (int i = 0; i < 7; ++i) EXPECT_NEAR(r[i], i + 1, 1e-6);
}

TEST(LinearAlgebra, CholeskyFactorsAndSolves) {
  EXPECT_THAT(Eval("a = f32[2,2] constant({ {4, 99}, {2, 10} })\n"
                   "ROOT r = f32[2,2] cholesky(a), lower=true"),
              ElementsAre(2, 0, 1, 3));
  EXPECT_THAT(
      Eval("a = f32[2,2] constant({ {2, 0}, {1, 3} })\nb = f32[2,1] constant({ {4}, {8} })\n"
           "ROOT r = f32[2,1] triangular-solve(a, b), left_side=true, lower=true, "
           "transpose_a=NO_TRANSPOSE"),
      ElementsAre(2, 2));
  EXPECT_THAT(Eval("a = f32[2,2] constant({ {2, 0}, {1, 3} })\nb = f32[1,2] constant({ {4, 6} })\n"
                   "ROOT r = f32[1,2] triangular-solve(a, b), left_side=false, lower=true, "
                   "transpose_a=NO_TRANSPOSE"),
              ElementsAre(1, 2));
}

TEST(LinearAlgebra, AMatrixThatIsNotPositiveDefiniteGivesNan) {
  EXPECT_TRUE(
      std::isnan(Eval("a = f32[1,1] constant({ {-1} })\n"
                      "ROOT r = f32[1,1] cholesky(a), lower=true")[0]));
}

TEST(BatchNorm, TrainingNormalisesByFeature) {
  const auto r = RunText(
      "x = f32[2,1] constant({ {1}, {3} })\ns = f32[1] constant({2})\n"
      "o = f32[1] constant({10})\n"
      "ROOT r = (f32[2,1], f32[1], f32[1]) batch-norm-training(x, s, o), "
      "epsilon=0, feature_index=1");
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(Numbers((*r)[0]), ElementsAre(DoubleNear(8, 1e-6), DoubleNear(12, 1e-6)));
  EXPECT_THAT(Numbers((*r)[1]), ElementsAre(2));
  EXPECT_THAT(Numbers((*r)[2]), ElementsAre(1));
}

// f32 goes by the last dimension at once, f64 element by element.
TEST(Contraction, SelectAndScatterByRowsIsThatByElements) {
  const auto text = [](const std::string& type, const std::string& scatter) {
    const std::string two =
        absl::StrCat("p = ", type, "[] parameter(0)\nq = ", type, "[] parameter(1)\n");
    return absl::StrCat(
        "ge { ", two, "ROOT c = pred[] compare(p, q), direction=GE }\n", "sc { ", two,
        "ROOT s = ", type, "[] ", scatter, "(p, q) }\nENTRY e {\nx = ", type,
        "[2,9,8,5] parameter(0)\ns = ", type, "[2,5,4,5] parameter(1)\nz = ", type,
        "[] constant(1)\nROOT r = ", type,
        "[2,9,8,5] select-and-scatter(x, s, z), window={size=1x3x3x1 stride=1x2x2x1 "
        "pad=0_0x1_1x0_1x0_0}, select=ge, scatter=sc\n}");
  };
  for (const std::string scatter : {"add", "multiply", "maximum"}) {
    const auto rows = LowerText(text("f32", scatter)), elements = LowerText(text("f64", scatter));
    ASSERT_TRUE(rows.ok() && elements.ok()) << rows.status() << elements.status();
    const auto a = Execute(**rows, RandomInputs((*rows)->parameters, 4), {});
    const auto b = Execute(**elements, RandomInputs((*elements)->parameters, 4), {});
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(Numbers((*a)[0]), Numbers((*b)[0])) << scatter;
  }
}

TEST(ScaledDot, ScalesBlocksOfWhatItContracts) {
  EXPECT_THAT(Eval("x = f8e4m3fn[1,4] constant({{1, 2, 3, 4}})\n"
                   "y = bf16[2,4] constant({{1, 1, 1, 1}, {1, 0, 0, 2}})\n"
                   "s = f8e8m0fnu[1,2] constant({{2, 0.5}})\nt = bf16[] constant(1)\n"
                   "ROOT r = f32[1,2] scaled-dot(x, y, s, t), lhs_contracting_dims={1}, "
                   "rhs_contracting_dims={1}"),
              testing::ElementsAre(2 * (1 + 2) + 0.5 * (3 + 4), 2 * 1 + 0.5 * 8));
}

}  // namespace
}  // namespace shardcall
