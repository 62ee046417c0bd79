// SPDX-License-Identifier: Apache-2.0
// Windows over sharded dimensions: reduce-window and convolution with every stride, padding and
// dilation, grouped convolutions, and the gradients of kernels.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {
    {{'A', 16}, {'B', 8}}, {{'A', 13}, {'B', 6}}, {{'A', 7}, {'B', 3}}};

ProgramFamily ReduceWindow(const std::string& op, const std::string& init,
                           const std::string& window, const std::string& result) {
  return {.text = absl::StrCat(R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] )",
                               op, R"((a, b)
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  init = f32[] constant()",
                               init, R"()
  ROOT r = f32[)",
                               result, R"(] reduce-window(x, init), window={)", window,
                               R"(}, to_apply=f<1:2>
}
)"),
          .sizes = kSizes,
          .max_cases = 150};
}

TEST(ReduceWindow, MeetsAcrossShards) {
  VerifyFamily(ReduceWindow("add", "0", "size=3x1 pad=1_1x0_0", "@A,@B"));
}
TEST(ReduceWindow, Strides) {
  VerifyFamily(ReduceWindow("maximum", "-inf", "size=3x2 stride=2x1 pad=1_1x0_1", "@(A-1/2+1),@B"));
}
TEST(ReduceWindow, InitialValuesAroundTheOperandCount) {
  VerifyFamily(ReduceWindow("add", "3", "size=2x3 pad=1_0x1_1", "@A,@B"));
}
TEST(ReduceWindow, DilatedWindows) {
  VerifyFamily(ReduceWindow("add", "0", "size=2x1 pad=2_0x0_0 rhs_dilate=2x1", "@A,@B"));
}
TEST(ReduceWindow, DilatedOperands) {
  VerifyFamily(ReduceWindow("add", "0", "size=2x1 pad=1_1x0_0 lhs_dilate=2x1", "@(A*2),@B"));
}
TEST(ReduceWindow, DilatedOperandsAtAnyPhase) {
  VerifyFamily(ReduceWindow("add", "0", "size=3x1 pad=1_1x0_0 lhs_dilate=3x1", "@(A*3-2),@B"));
  VerifyFamily(
      ReduceWindow("maximum", "-inf", "size=4x2 pad=2_0x0_1 lhs_dilate=2x1", "@(A*2-2),@B"));
}
TEST(ReduceWindow, NegativePaddingCuts) {
  VerifyFamily(ReduceWindow("add", "0", "size=2x1 pad=-1_0x0_0", "@(A-2),@B"));
}

// Windows that no shard's edge cuts send nothing, others the rows that they see beyond.
TEST(ReduceWindow, SendsOnlyTheRowsThatWindowsSeeBeyondTheShard) {
  const auto text = [](const std::string& window, int rows) {
    return absl::StrCat(R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b)
}

ENTRY main {
  x = f32[64,10] parameter(0), sharding={devices=[8,1]<=[8]}
  init = f32[] constant(-inf)
  ROOT r = f32[)",
                        rows, ",10] reduce-window(x, init), window={", window,
                        "}, to_apply=f, sharding={devices=[8,1]<=[8]}\n}\n");
  };
  EXPECT_EQ(BytesMoved(text("size=2x1 stride=2x1", 32)), 0);
  EXPECT_EQ(BytesMoved(text("size=3x1 pad=1_1x0_0", 64)), 2 * 7.0 / 8 * 10 * 4);
  EXPECT_EQ(BytesMoved(text("size=5x1 stride=2x1 pad=2_2x0_0", 32)), 3 * 7.0 / 8 * 10 * 4);
}

TEST(Cumulative, SumsFromTheFrontAndFromTheEnd) {
  VerifyFamily(ReduceWindow("add", "0", "size=@Ax1 pad=@(A-1)_0x0_0", "@A,@B"));
  VerifyFamily(ReduceWindow("add", "0", "size=1x@B pad=0_0x0_@(B-1)", "@A,@B"));
}
TEST(Cumulative, MaximaAndInitialValues) {
  VerifyFamily(ReduceWindow("maximum", "-inf", "size=@Ax1 pad=0_@(A-1)x0_0", "@A,@B"));
  VerifyFamily(ReduceWindow("add", "3", "size=@Ax1 pad=@(A-1)_0x0_0", "@A,@B"));
}
TEST(Cumulative, SumsOfNegativeZerosHaveTheSignOfOneDevice) {
  VerifyFamily({.text = R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  zero = f32[] constant(0)
  zeros = f32[@A,@B] broadcast(zero), dimensions={}
  x = f32[@A,@B] negate(zeros)<0:2>
  ROOT r = f32[@A,@B] reduce-window(x, zero), window={size=@Ax1 pad=@(A-1)_0x0_0}, to_apply=f<1:2>
}
)",
                .sizes = kSizes,
                .max_cases = 150});
}
TEST(Cumulative, SendsATotalOfEachShard) {
  EXPECT_EQ(BytesMoved(R"(
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[4096] parameter(0), sharding={devices=[8]<=[8]}
  zero = f32[] constant(0)
  ROOT r = f32[4096] reduce-window(x, zero), window={size=4096 pad=4095_0}, to_apply=f, sharding={devices=[8]<=[8]}
}
)"),
            7 * 4);
}

// 1 + r = (1 + x) (1 + y), which is no reduction that the engine knows. 0 changes nothing.
const char kOnesProduct[] = R"(
f {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  p = s32[] multiply(x, y)
  s = s32[] add(x, y)
  ROOT r = s32[] add(s, p)
}
)";
TEST(Cumulative, ByAComputationOfTheProgramsOwn) {
  for (const char* padding : {"@(A-1)_0", "0_@(A-1)"}) {
    VerifyFamily({.text = absl::StrCat(kOnesProduct, R"(
ENTRY main {
  x = s32[@A,@B] parameter(0)<0:2>
  zero = s32[] constant(0)
  ROOT r = s32[@A,@B] reduce-window(x, zero), window={size=@Ax1 pad=)",
                                       padding, R"(x0_0}, to_apply=f<1:2>
}
)"),
                  .sizes = kSizes,
                  .max_cases = 300});
  }
}
TEST(Cumulative, ByAComputationOfTheProgramsOwnSendsATotalOfEachShard) {
  const auto bytes = [](int init) {
    return BytesMoved(absl::StrCat(kOnesProduct, R"(
ENTRY main {
  x = s32[4096] parameter(0), sharding={devices=[8]<=[8]}
  init = s32[] constant()",
                                   init, R"()
  ROOT r = s32[4096] reduce-window(x, init), window={size=4096 pad=4095_0}, to_apply=f, sharding={devices=[8]<=[8]}
}
)"));
  };
  EXPECT_EQ(bytes(0), 7 * 4);
  // An initial value that changes what it is combined with may not start every shard.
  EXPECT_EQ(bytes(1), 7 * 4096 / 8 * 4);
}

ProgramFamily Convolution(const std::string& window, const std::string& places, int kernel = 3) {
  return {.text = absl::StrCat(R"(
  x = f32[@B,@A,4] parameter(0)<0:3>
  k = f32[)",
                               kernel, R"(,4,6] parameter(1)<1:3>
  ROOT r = f32[@B,)",
                               places, R"(,6] convolution(x, k), window={)", window,
                               R"(}, dim_labels=b0f_0io->b0f<2:3>
)"),
          .sizes = kSizes,
          .max_cases = 150};
}

TEST(Convolution, SlidesAcrossShards) { VerifyFamily(Convolution("size=3 pad=1_1", "@A")); }
TEST(Convolution, Causal) { VerifyFamily(Convolution("size=3 pad=2_0", "@A")); }
TEST(Convolution, Strided) {
  VerifyFamily(Convolution("size=3 stride=2 pad=1_1", "@(A-1/2+1)"));
  VerifyFamily(Convolution("size=2 stride=2", "@(A/2)", 2));
}
TEST(Convolution, DilatedKernel) { VerifyFamily(Convolution("size=3 pad=2_2 rhs_dilate=2", "@A")); }
TEST(Convolution, DilatedOperand) {
  VerifyFamily(Convolution("size=3 pad=1_2 lhs_dilate=2", "@(A*2)"));
  VerifyFamily(Convolution("size=3 stride=2 pad=1_2 lhs_dilate=3", "@(A*3-2/2+1)"));
}
// The gradient of the operand of a convolution with strides, whose shards begin between elements.
TEST(Convolution, DilatedOperandAtAnyPhase) {
  VerifyFamily(Convolution("size=3 pad=1_1 lhs_dilate=2", "@(A*2-1)"));
  VerifyFamily(Convolution("size=3 pad=2_2 lhs_dilate=3", "@(A*3)"));
  VerifyFamily(Convolution("size=3 pad=2_-1 lhs_dilate=3 rhs_dilate=2", "@(A*3-5)"));
}
TEST(Convolution, ReversedKernel) {
  VerifyFamily(Convolution("size=3 pad=1_1 rhs_reversal=1", "@A"));
}
TEST(Convolution, KernelLongerThanAShard) { VerifyFamily(Convolution("size=7 pad=3_3", "@A", 7)); }

TEST(Convolution, FeatureGroups) {
  VerifyFamily({.text = R"(
  x = f32[@B,5,@(G*2)] parameter(0)<0:3>
  k = f32[3,2,@(G*3)] parameter(1)<1:3>
  ROOT r = f32[@B,5,@(G*3)] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, feature_group_count=@G<2:3>
)",
                .sizes = {{{'B', 4}, {'G', 4}}, {{'B', 3}, {'G', 6}}},
                .max_cases = 200});
}

TEST(Convolution, DepthwiseGroups) {
  VerifyFamily({.text = R"(
  x = f32[@B,5,@G] parameter(0)<0:3>
  k = f32[3,1,@G] parameter(1)<1:3>
  ROOT r = f32[@B,5,@G] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, feature_group_count=@G<2:3>
)",
                .sizes = {{{'B', 4}, {'G', 8}}, {{'B', 3}, {'G', 6}}},
                .max_cases = 200});
}

TEST(Convolution, BatchGroups) {
  VerifyFamily({.text = R"(
  x = f32[@(G*2),5,@B] parameter(0)<0:3>
  k = f32[3,@B,@(G*3)] parameter(1)<1:3>
  ROOT r = f32[2,5,@(G*3)] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, batch_group_count=@G<2:3>
)",
                .sizes = {{{'B', 4}, {'G', 4}}, {{'B', 5}, {'G', 6}}},
                .max_cases = 200});
}

// The gradient of a kernel: a window as long as the operand, and few places.
TEST(Convolution, SumsOverShardsOfOperandAndKernel) {
  VerifyFamily({.text = R"(
  x = f32[4,@A,3] parameter(0)<0:3>
  g = f32[@A,3,5] parameter(1)<1:3>
  ROOT r = f32[4,3,5] convolution(x, g), window={size=@A pad=1_1}, dim_labels=b0f_0io->b0f<2:3>
)",
                .sizes = {{{'A', 16}}, {{'A', 13}}, {{'A', 6}}},
                .max_cases = 200});
  VerifyFamily({.text = R"(
  x = f32[4,@A,3] parameter(0)<0:3>
  g = f32[@(A/2),3,5] parameter(1)<1:3>
  ROOT r = f32[4,3,5] convolution(x, g), window={size=@(A/2) pad=1_0 rhs_dilate=2}, dim_labels=b0f_0io->b0f<2:3>
)",
                .sizes = {{{'A', 16}}, {{'A', 12}}},
                .max_cases = 200});
}

TEST(Convolution, GradientsOfKernelsSendHalosAndASum) {
  const std::string text = R"(
  x = f32[4,64,3] parameter(0), sharding={devices=[1,8,1]<=[8]}
  g = f32[64,3,5] parameter(1), sharding={devices=[8,1,1]<=[8]}
  ROOT r = f32[4,3,5] convolution(x, g), window={size=64 pad=1_1}, dim_labels=b0f_0io->b0f
)";
  // Two rows of x, and an all-reduce of the result.
  EXPECT_EQ(BytesMoved(text), 2 * 7.0 / 8 * 4 * 3 * 4 + 2 * 7.0 / 8 * 4 * 3 * 5 * 4);
}

}  // namespace
}  // namespace shardcall
