// SPDX-License-Identifier: Apache-2.0
// Ops that need a dimension whole: its axes move to another dimension where that costs less
// than to gather it.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/report.h"
#include "tests/partitioner/spmd/plan_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<Sizes> kSizes = {
    {{'A', 8}, {'B', 4}}, {{'A', 12}, {'B', 6}}, {{'A', 5}, {'B', 3}}};

// Small programs too are decided by their bytes alone.
TextOptions BytesAlone() {
  TextOptions options;
  options.spmd.cost.latency = 1e-15;
  return options;
}

std::string Sorted(const std::string& shape, const std::string& sharding, int dim) {
  return absl::StrCat(R"(
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

ENTRY main {
  x = )",
                      shape, " parameter(0), sharding=", sharding, "\n  ROOT sorted = ", shape,
                      " sort(x), dimensions={", dim, "}, to_apply=less, sharding=", sharding,
                      "\n}\n");
}

TEST(Moved, ASortAlongAShardedDimensionIsTwoAllToAlls) {
  const auto p = Done(Sorted("f32[4096,512]", "{devices=[4,1]<=[4]}", 0), 4);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllToAll), 2);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllGather), 0);
  // Of its 1024 x 512 floats a device keeps a quarter, each time.
  EXPECT_EQ(TotalBytesMoved(p->local), 2 * 1024 * 512 * 4 * 3 / 4);
  EXPECT_THAT(LocalText(*p), HasSubstr("f32[4096,128]{1,0} sort("));
  EXPECT_THAT(p->plan.fallbacks, IsEmpty());
  EXPECT_THAT(p->plan.gathers, IsEmpty());
}

TEST(Moved, ThePlanAndTheReportNameTheStrategy) {
  const auto p = Done(Sorted("f32[4096,512]", "{devices=[4,1]<=[4]}", 0), 4);
  EXPECT_THAT(p->plan.ToString(p->global->program), HasSubstr("%sorted = sort rule by \"moved\""));
  ASSERT_FALSE(p->local.collectives.empty());
  EXPECT_EQ(CauseText(*p, p->local.collectives[0]),
            "operand 0 of %sorted: [{\"x0\"}, {}] -> [{}, {\"x0\"}], by the strategy \"moved\"");
}

TEST(Moved, AxesGoToADimensionThatHasSomeAlready) {
  const auto p = Done(Sorted("f32[4096,512]", "{devices=[4,2]<=[8]}", 0), 8);
  EXPECT_THAT(LocalText(*p), HasSubstr("f32[4096,64]{1,0} sort("));
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllGather), 0);
}

TEST(Moved, NothingMovesToADimensionThatTheyDoNotDivide) {
  const auto p = Done(Sorted("f32[4096,514]", "{devices=[4,1]<=[4]}", 0), 4);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllToAll), 0);
  ASSERT_EQ(p->plan.fallbacks.size(), 1);
  EXPECT_THAT(p->plan.fallbacks[0].reason,
              HasSubstr("sort takes longer on shards of dim 0 of operand 0; it is gathered"));
}

TEST(Moved, ASmallArrayIsGatheredAsTwoCollectivesWouldTakeLonger) {
  const auto p = Done(Sorted("f32[64,8]", "{devices=[4,1]<=[4]}", 0), 4);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllToAll), 0);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllGather), 1);
}

TEST(Moved, ADimensionThatACustomCallKeepsWholeGivesItsAxesToItsRows) {
  const auto p = Done(R"(
  x = f32[4096,512] parameter(0), sharding={devices=[1,4]<=[4]}
  w = f32[512] parameter(1)
  ROOT r = f32[4096,512] custom-call(x, w), custom_call_target="rms_norm", api_version=API_VERSION_TYPED_FFI, sharding={devices=[1,4]<=[4]}
)",
                      4);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllToAll), 2);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllGather), 0);
}

TEST(MovedFamilies, SortsOfOneAndOfTwoOperands) {
  VerifyFamily({.text = R"(
less {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT
}

ENTRY main {
  k = s32[@A,@B] parameter(0)<0:2>
  v = f32[@A,@B] parameter(1)<1:2>
  sorted = (s32[@A,@B], f32[@A,@B]) sort(k, v), dimensions={0}, is_stable=true, to_apply=less
  keys = s32[@A,@B] get-tuple-element(sorted), index=0
  values = f32[@A,@B] get-tuple-element(sorted), index=1
  left = s32[@A,@B] negate(keys)<0:2>
  right = f32[@A,@B] negate(values)<1:2>
  ROOT r = (s32[@A,@B], f32[@A,@B]) tuple(left, right)
}
)",
                .sizes = kSizes,
                .max_cases = 300,
                .options = BytesAlone()});
}

TEST(MovedFamilies, RunningSums) {
  VerifyFamily({.text = R"(
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  zero = f32[] constant(0)
  ROOT r = f32[@A,@B] reduce-window(x, zero), window={size=@Ax1 pad=@(A-1)_0x0_0}, to_apply=add<1:2>
}
)",
                .sizes = kSizes,
                .max_cases = 300,
                .options = BytesAlone()});
}

TEST(MovedFamilies, ConvolutionsWithShardedSpace) {
  VerifyFamily({.text = R"(
  x = f32[4,@A,@B] parameter(0)<0:3>
  k = f32[3,@B,4] parameter(1)
  ROOT r = f32[4,@A,4] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f<1:3>
)",
                .sizes = kSizes,
                .max_cases = 300,
                .options = BytesAlone()});
}

TEST(MovedFamilies, CallsWhoseFeaturesStayWhole) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B,8] parameter(0)<0:3>
  w = f32[8] parameter(1)
  ROOT r = f32[@A,@B,8] custom-call(x, w), custom_call_target="rms_norm", api_version=API_VERSION_TYPED_FFI<1:3>
)",
                .sizes = kSizes,
                .max_cases = 300,
                .options = BytesAlone()});
}

}  // namespace
}  // namespace shardcall
