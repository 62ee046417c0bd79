// SPDX-License-Identifier: Apache-2.0
// scan, ragged-dot, random numbers, sizes of dynamic dimensions, and the ops that
// have no meaning on one device.
#include <algorithm>
#include <cmath>

#include "tests/partitioner/runtime/run_text.h"

namespace shardcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kRunningSum[] =
    "body {\n x = s32[] parameter(0)\n c = s32[] parameter(1)\n s = s32[] add(c, x)\n"
    " m = s32[] multiply(s, x)\n ROOT r = (s32[], s32[]) tuple(m, s)\n}\n";

TEST(Scan, OutputsAreStackedAndCarriesHandedOn) {
  const std::string entry =
      "ENTRY e {\n x = s32[3] constant({1, 2, 3})\n c = s32[] constant(10)\n"
      " ROOT r = (s32[3], s32[]) scan(x, c), dimensions={0}, num_carries=1, ";
  const auto forward = RunText(absl::StrCat(kRunningSum, entry, "to_apply=body\n}\n"));
  ASSERT_TRUE(forward.ok()) << forward.status();
  EXPECT_THAT(Numbers((*forward)[0]), ElementsAre(11, 26, 48));
  EXPECT_THAT(Numbers((*forward)[1]), ElementsAre(16));
  const auto reverse =
      RunText(absl::StrCat(kRunningSum, entry, "is_reverse=true, to_apply=body\n}\n"));
  ASSERT_TRUE(reverse.ok()) << reverse.status();
  EXPECT_THAT(Numbers((*reverse)[0]), ElementsAre(16, 30, 39));
}

TEST(Scan, NoStepsLeaveTheCarry) {
  const auto none = RunText(absl::StrCat(
      kRunningSum,
      "ENTRY e {\n x = s32[0] constant({})\n c = s32[] constant(10)\n"
      " ROOT r = (s32[0], s32[]) scan(x, c), dimensions={0}, num_carries=1, to_apply=body\n}\n"));
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(Numbers((*none)[1]), ElementsAre(10));
}

TEST(RaggedDot, RowsMeetTheSliceOfTheirGroup) {
  EXPECT_THAT(Eval("x = s32[4,1] constant({ {1}, {2}, {3}, {4} })\n"
                   "y = s32[2,1,1] constant({ { {10} }, { {100} } })\n"
                   "s = s32[2] constant({1, 2})\n"
                   "ROOT r = s32[4,1] ragged-dot(x, y, s), lhs_contracting_dims={1}, "
                   "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"),
              ElementsAre(10, 200, 300, 0));
}

TEST(RaggedDot, GroupsOfAContractingDimensionAreSummedApart) {
  EXPECT_THAT(Eval("x = s32[1,4] constant({ {1, 2, 3, 4} })\n"
                   "y = s32[4,1] constant({ {1}, {1}, {1}, {1} })\n"
                   "s = s32[3] constant({2, 0, 1})\n"
                   "ROOT r = s32[3,1,1] ragged-dot(x, y, s), lhs_contracting_dims={1}, "
                   "rhs_contracting_dims={0}, lhs_ragged_dims={1}"),
              ElementsAre(3, 0, 3));
}

TEST(RaggedDot, SizesThatAreTooLargeOrNegativeStayInside) {
  EXPECT_THAT(Eval("x = s32[2,1] constant({ {1}, {2} })\n"
                   "y = s32[3,1,1] constant({ { {7} }, { {10} }, { {100} } })\n"
                   "s = s32[3] constant({-5, 2147483647, 2147483647})\n"
                   "ROOT r = s32[2,1] ragged-dot(x, y, s), lhs_contracting_dims={1}, "
                   "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"),
              ElementsAre(10, 20));
}

TEST(Rng, UniformNumbersFillTheirRangeAndNoMore) {
  const std::vector<double> x = Eval(
      "a = f32[] constant(-2)\nb = f32[] constant(6)\n"
      "ROOT r = f32[20000] rng(a, b), distribution=rng_uniform");
  ASSERT_EQ(x.size(), 20000);
  EXPECT_GE(*std::min_element(x.begin(), x.end()), -2);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 6);
  double mean = 0, square = 0;
  for (double v : x) mean += v / 20000, square += v * v / 20000;
  EXPECT_NEAR(mean, 2, 0.06);
  EXPECT_NEAR(square - mean * mean, 64.0 / 12, 0.1);
}

TEST(Rng, WholeNumbersAreAllDrawn) {
  std::vector<double> x = Eval(
      "a = s8[] constant(-1)\nb = s8[] constant(3)\n"
      "ROOT r = s8[4000] rng(a, b), distribution=rng_uniform");
  for (int v = -1; v < 3; ++v) EXPECT_NEAR(std::count(x.begin(), x.end(), v), 1000, 150) << v;
}

TEST(Rng, NormalNumbersHaveTheirMeanAndDeviation) {
  const std::vector<double> x = Eval(
      "a = f64[] constant(5)\nb = f64[] constant(2)\n"
      "ROOT r = f64[20000] rng(a, b), distribution=rng_normal");
  double mean = 0, square = 0, inside = 0;
  for (double v : x) mean += v / 20000, square += v * v / 20000, inside += std::abs(v - 5) < 2;
  EXPECT_NEAR(mean, 5, 0.06);
  EXPECT_NEAR(square - mean * mean, 4, 0.15);
  EXPECT_NEAR(inside / 20000, 0.6827, 0.015);
}

TEST(Rng, EveryCallDrawsAnewAndEveryRunTheSame) {
  const char* text =
      "a = f32[] constant(0)\nb = f32[] constant(1)\n"
      "x = f32[8] rng(a, b), distribution=rng_uniform\n"
      "y = f32[8] rng(a, b), distribution=rng_uniform\n"
      "ROOT r = (f32[8], f32[8]) tuple(x, y)";
  const auto first = RunText(text), second = RunText(text);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(Numbers((*first)[0]), Numbers((*first)[1]));
  EXPECT_EQ(Numbers((*first)[0]), Numbers((*second)[0]));
}

TEST(Rng, EveryDeviceDrawsItsOwn) {
  const char* text =
      "a = f32[] constant(0)\nb = f32[] constant(1)\n"
      "x = f32[8] rng(a, b), distribution=rng_uniform\n"
      "s = u64[2] rng-get-and-update-state(), delta=5\n"
      "ROOT r = (f32[8], u64[2]) tuple(x, s)";
  DeviceContext other;
  other.num_devices = 2;
  const auto first = RunText(text, {}, other);
  other.device = 1;
  const auto second = RunText(text, {}, other);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(Numbers((*first)[0]), Numbers((*second)[0]));
  EXPECT_NE(Numbers((*first)[1]), Numbers((*second)[1]));
}

TEST(RngState, GivesWhatStoodBeforeItsIncrement) {
  const auto states = RunText(
      "a = u64[2] rng-get-and-update-state(), delta=5\n"
      "b = u64[2] rng-get-and-update-state(), delta=1, control-predecessors={a}\n"
      "ROOT r = (u64[2], u64[2]) tuple(a, b)");
  ASSERT_TRUE(states.ok()) << states.status();
  EXPECT_EQ(IntElement((*states)[1], 0) - IntElement((*states)[0], 0), 5);
}

TEST(Transfers, HaveNoOtherSide) {
  const auto infeed = LowerText(
      "t = token[] after-all()\n"
      "ROOT r = (f32[2], token[]) infeed(t), infeed_config=\"\"");
  EXPECT_EQ(DiagnosticCode(infeed.status()), "E310");
  EXPECT_THAT(std::string(infeed.status().message()), HasSubstr("no queue"));
  const auto send = LowerText(
      "t = token[] after-all()\nx = f32[2] constant({1, 2})\n"
      "s = (f32[2], u32[], token[]) send(x, t), channel_id=1\n"
      "ROOT d = token[] send-done(s), channel_id=1");
  EXPECT_EQ(DiagnosticCode(send.status()), "E310");
  EXPECT_THAT(std::string(send.status().message()), HasSubstr("no other side"));
}

}  // namespace
}  // namespace shardcall
