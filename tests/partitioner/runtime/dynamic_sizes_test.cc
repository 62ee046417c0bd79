// SPDX-License-Identifier: Apache-2.0
// Arrays smaller than their bounds. Ops one by one are held against XLA in
// tests/differential/ops/family_dynamic.py.
#include "tests/partitioner/runtime/run_text.h"

namespace shardcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// d = s32[<=4], the first n of 1, 2, 3, 4.
std::string First(int n, absl::string_view then) {
  return absl::StrCat("x = s32[4] constant({1, 2, 3, 4})\nn = s32[] constant(", n,
                      ")\nz = s32[] constant(0)\n"
                      "d = s32[<=4] set-dimension-size(x, n), dimensions={0}\n",
                      then);
}
std::string Error(absl::string_view text) {
  const auto result = RunText(text);
  return result.ok() ? "runs" : std::string(result.status().message());
}

TEST(DynamicSizes, AResultHasItsOwnSize) {
  const auto r = RunText(First(3, "ROOT e = s32[<=4] negate(d)"));
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ((*r)[0].dims(), Dims({3}));
  EXPECT_THAT(Numbers((*r)[0]), ElementsAre(-1, -2, -3));
  EXPECT_THAT(Eval(First(0, "ROOT e = s32[<=4] copy(d)")), IsEmpty());
  EXPECT_THAT(Eval(First(4, "ROOT e = s32[<=4] copy(d)")), ElementsAre(1, 2, 3, 4));
}

TEST(DynamicSizes, AreKnownToTheProgram) {
  EXPECT_THAT(Eval(First(2, "ROOT s = s32[] get-dimension-size(d), dimensions={0}")),
              ElementsAre(2));
}

TEST(DynamicSizes, MayComeWithTheArgument) {
  const auto program = LowerText("x = f32[<=4] parameter(0)\nROOT e = f32[<=4] add(x, x)");
  ASSERT_TRUE(program.ok()) << program.status();
  for (int n : {2, 4, 2}) {
    const auto r = Execute(**program, std::vector<Tensor>{F32({n}, std::vector<float>(n, 3))}, {});
    ASSERT_TRUE(r.ok()) << r.status();
    EXPECT_THAT(Numbers((*r)[0]), testing::ElementsAreArray(std::vector<double>(n, 6)));
  }
  EXPECT_EQ(
      DiagnosticCode(
          Execute(**program, std::vector<Tensor>{F32({5}, std::vector<float>(5))}, {}).status()),
      "E313");
}

TEST(DynamicSizes, OfAStaticOperandTheFirstElementsAreTaken) {
  EXPECT_THAT(Eval(First(2, "ROOT e = s32[<=4] add(x, d)")), ElementsAre(2, 4));
  EXPECT_THAT(Eval(First(1, "ROOT e = s32[<=8] concatenate(d, x), dimensions={0}")),
              ElementsAre(1, 1, 2, 3, 4));
}

TEST(DynamicSizes, ReshapesKeepTheElements) {
  const char* kMatrix =
      "x = s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})\nn = s32[] constant(2)\n"
      "d = s32[2,<=3] set-dimension-size(x, n), dimensions={1}\n";
  EXPECT_THAT(Eval(absl::StrCat(kMatrix, "ROOT e = s32[<=6] reshape(d)")), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(Error(absl::StrCat(kMatrix, "ROOT e = s32[<=2,3] reshape(d)")),
              HasSubstr("E310 reshape"));
  EXPECT_THAT(Eval("x = s32[4] constant({1, 2, 3, 4})\nn = s32[] constant(2)\n"
                   "ROOT s = s32[<=3,<=2] dynamic-reshape(x, n, n)"),
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Error("x = s32[4] constant({1, 2, 3, 4})\nn = s32[] constant(1)\n"
                    "ROOT s = s32[<=2,<=2] dynamic-reshape(x, n, n)"),
              HasSubstr("E311 dynamic-reshape: 4 elements cannot be s32[1,1]"));
}

TEST(DynamicSizes, GoThroughLoopsBranchesAndCalls) {
  EXPECT_THAT(Eval("f {\n a = s32[<=4] parameter(0)\n ROOT b = s32[<=4] negate(a)\n}\n"
                   "g {\n a = s32[<=4] parameter(0)\n ROOT b = s32[<=4] add(a, a)\n}\n"
                   "ENTRY e {\n" +
                   First(2,
                         "p = pred[] constant(false)\n c = s32[<=4] call(d), to_apply=f\n"
                         "ROOT r = s32[<=4] conditional(p, c, c), true_computation=f, "
                         "false_computation=g") +
                   "\n}"),
              ElementsAre(-2, -4));
}

TEST(DynamicSizes, WhatHasNoMeaningIsAnError) {
  EXPECT_THAT(Error(First(5, "ROOT e = s32[<=4] copy(d)")),
              HasSubstr("E311 set-dimension-size: the size 5 is not in [0, 4]"));
  EXPECT_THAT(Error(First(-1, "ROOT e = s32[<=4] copy(d)")), HasSubstr("E311"));
  EXPECT_THAT(Error(First(2,
                          "m = s32[] constant(3)\n"
                          "ROOT e = s32[<=4] set-dimension-size(d, m), dimensions={0}")),
              HasSubstr("E310 set-dimension-size: the dimension would grow from 2 to 3"));
  EXPECT_THAT(Error(First(2, "ROOT e = s32[1] slice(d), slice={[2:3]}")),
              HasSubstr("E310 slice: over s32[2]"));
}

TEST(DynamicSizes, AreNotTakenForStaticOnes) {
  EXPECT_THAT(Error(First(2, "e = s32[4] negate(d)\nROOT f = s32[4] negate(e)")),
              HasSubstr("E311 negate: the result is s32[2], which its shape s32[4] does not"));
  EXPECT_THAT(Error(First(2, "e = s32[4] copy(d)\nROOT f = s32[4] negate(e)")),
              HasSubstr("E311 copy: a dynamic dimension becomes a static one"));
  EXPECT_THAT(Error("f {\n a = s32[4] parameter(0)\n ROOT b = s32[4] negate(a)\n}\nENTRY e {\n" +
                    First(2, "ROOT r = s32[4] call(d), to_apply=f") + "\n}"),
              HasSubstr("E311 call: a dynamic dimension becomes a static one"));
}

}  // namespace
}  // namespace shardcall
