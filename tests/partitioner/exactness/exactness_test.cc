// SPDX-License-Identifier: Apache-2.0
// Which results are exact follows from the values at every instruction, and verify
// compares by that.
#include "shardcall/partitioner/exactness/exactness.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/api/verify.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/float_arrays.h"
#include "shardcall/partitioner/runtime/io/random_inputs.h"
#include "shardcall/sharding/base/status.h"
#include "tests/support/test_targets.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using ::testing::ElementsAre;

constexpr char kSum[] =
    "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
    "  ROOT s = f32[] add(a, b)\n}\n"
    "most {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
    "  ROOT s = f32[] maximum(a, b)\n}\n";

absl::StatusOr<ExactResults> Evaluated(const Module& module, std::vector<Tensor> inputs,
                                       const ExactOptions& options = {}) {
  SHARDCALL_ASSIGN_OR_RETURN(const ExactEvaluator evaluator, ExactEvaluator::Create(module));
  return evaluator.Run(std::move(inputs), options);
}

// The program's outputs on x, f32[4], that are exact.
std::vector<bool> Exact(const std::vector<float>& x, const std::string& lines) {
  auto module =
      ParseText(std::string("HloModule m\n") + kSum + "ENTRY main {\n" +
                "  x = f32[4] parameter(0)\n  zero = f32[] constant(0)\n" + lines + "}\n");
  EXPECT_TRUE(module.ok()) << module.status();
  const auto results =
      Evaluated(*module, {Tensor::From(ElementType::kF32, {4}, x)}, {.handlers = &TestHandlers()});
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? results->exact : std::vector<bool>();
}

constexpr char kReduce[] = "  ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=add\n";

TEST(Exactness, OfSumsIsTheSumOfMagnitudesInTheBitsOfTheType) {
  EXPECT_THAT(Exact({1, -2, 3, 4}, kReduce), ElementsAre(true));
  EXPECT_THAT(Exact({0.125, -0.5, 3, 4}, kReduce), ElementsAre(true));  // eighths
  EXPECT_THAT(Exact({8388608, 8388607, 0, 0}, kReduce), ElementsAre(true));
  // The result is small, what it passes through is not.
  EXPECT_THAT(Exact({8388608, -8388608, 1, 1}, kReduce), ElementsAre(false));
  EXPECT_THAT(Exact({8388608, 8388608, 1, 1}, kReduce), ElementsAre(false));
  EXPECT_THAT(Exact({16777216, 16777216, 33554432, 0}, kReduce), ElementsAre(true));  // 2^24 each
  EXPECT_THAT(Exact({0.1f, 0.2f, 0.3f, 0.4f}, kReduce), ElementsAre(false));
}

TEST(Exactness, IsOfEachOutputAndGoesOnWithValues) {
  EXPECT_THAT(Exact({1, 2, 3, 4},
                    "  e = f32[4] exponential(x)\n"
                    "  s = f32[] reduce(e, zero), dimensions={0}, to_apply=add\n"
                    "  w = f32[] reduce(x, zero), dimensions={0}, to_apply=add\n"
                    "  m = f32[] reduce(e, zero), dimensions={0}, to_apply=most\n"
                    "  q = f32[] divide(s, m)\n"
                    "  ROOT t = (f32[4], f32[], f32[], f32[], f32[]) tuple(e, s, w, m, q)\n"),
              ElementsAre(true, false, true, true, false));
}

TEST(Exactness, OfProductsIsThatOfTheirTerms) {
  const char dot[] =
      "  ROOT d = f32[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n";
  EXPECT_THAT(Exact({1, 2, 3, 4}, dot), ElementsAre(true));
  EXPECT_THAT(Exact({4000, 1, 0, 0}, dot), ElementsAre(true));
  EXPECT_THAT(Exact({4000, 4000, 1, 0}, dot), ElementsAre(false));
}

TEST(Exactness, PartsThatAreAddedLaterHaveTheirBoundsAdded) {
  // Each sum is exact; of parts of both, added before the devices' are, some are not.
  const char lines[] =
      "  s = f32[] reduce(x, zero), dimensions={0}, to_apply=add\n"
      "  n = f32[4] negate(x)\n"
      "  o = f32[] reduce(n, zero), dimensions={0}, to_apply=add\n"
      "  ROOT r = f32[] add(s, o)\n";
  EXPECT_THAT(Exact({4194304, 4194303, 0, 0}, lines), ElementsAre(true));
  EXPECT_THAT(Exact({8388608, 8388607, 0, 0}, lines), ElementsAre(false));
}

TEST(Exactness, GoesThroughLoopsAndCalls) {
  const std::string loop = R"(
  i = s32[] constant(0)
  start = (s32[], f32[4]) tuple(i, x)
  w = (s32[], f32[4]) while(start), condition=go_on, body=body
  j = s32[] get-tuple-element(w), index=0
  y = f32[4] get-tuple-element(w), index=1
  ROOT t = (s32[], f32[4]) tuple(j, y)
)";
  const std::string bodies = R"(go_on {
  c = (s32[], f32[4]) parameter(0)
  k = s32[] get-tuple-element(c), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(k, three), direction=LT
}
body {
  c = (s32[], f32[4]) parameter(0)
  k = s32[] get-tuple-element(c), index=0
  v = f32[4] get-tuple-element(c), index=1
  one = s32[] constant(1)
  next = s32[] add(k, one)
  z = f32[] constant(0)
  sum = f32[] reduce(v, z), dimensions={0}, to_apply=add
  all = f32[4] broadcast(sum), dimensions={}
  ROOT r = (s32[], f32[4]) tuple(next, all)
}
)";
  for (const auto& [x, exact] : std::vector<std::pair<float, bool>>{{3, true}, {8388607, false}}) {
    auto module = ParseText("HloModule m\n" + std::string(kSum) + bodies +
                            "ENTRY main {\n  x = f32[4] parameter(0)\n" + loop + "}\n");
    ASSERT_TRUE(module.ok()) << module.status();
    const auto results =
        Evaluated(*module, {Tensor::From(ElementType::kF32, {4}, std::vector<float>(4, x))});
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_THAT(results->exact, ElementsAre(true, exact));
    EXPECT_THAT(
        std::string(Evaluated(*module, {Tensor::Zeros(ElementType::kF32, {4})}, {.most_steps = 5})
                        .status()
                        .message()),
        testing::HasSubstr("more steps"));
  }
}

TEST(Exactness, IsThatOfTheSamePlainEvaluation) {
  auto module = ParseText(
      "HloModule m\nENTRY main {\n  x = f32[4,3] parameter(0)\n"
      "  y = f32[3,5] parameter(1)\n"
      "  d = f32[4,5] dot(x, y), lhs_contracting_dims={1}, "
      "rhs_contracting_dims={0}\n  ROOT r = f32[4,5] tanh(d)\n}\n");
  ASSERT_TRUE(module.ok()) << module.status();
  const std::vector<Tensor> inputs = RandomInputs(ParameterLeaves(*module), 3);
  const auto plain = Evaluate(*module, inputs, nullptr);
  const auto exact = Evaluated(*module, inputs);
  ASSERT_TRUE(plain.ok() && exact.ok());
  EXPECT_TRUE(BitwiseEqual((*plain)[0], exact->outputs[0]));
}

// Sums within leave 2^24, which the outputs do not.
TEST(Verify, RightProgramsWhoseSumsRoundAreNoMismatch) {
  const auto r = VerifyText(R"(HloModule m, num_partitions=4
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[64,64] parameter(0), sharding={devices=[1,4]<=[4]}
  big = f32[] constant(100003)
  bigs = f32[64,64] broadcast(big), dimensions={}
  y = f32[64,64] multiply(x, bigs)
  z = f32[64,64] multiply(y, x)
  zero = f32[] constant(0)
  s = f32[64] reduce(z, zero), dimensions={1}, to_apply=add
  small = f32[] constant(1e-6)
  smalls = f32[64] broadcast(small), dimensions={}
  ROOT r = f32[64] multiply(s, smalls)
}
)",
                            {});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->status, VerifyResult::Status::kOk) << VerifyJson(*r);
  EXPECT_FALSE(r->exact);
}

// An exponential does not keep the rest from inputs of both signs.
TEST(Verify, ProgramsWithAnExponentialGetInputsOfBothSigns) {
  const auto r = VerifyText(R"(HloModule m, num_partitions=4
ENTRY main {
  x = f32[64] parameter(0), sharding={devices=[4]<=[4]}
  e = f32[64] exponential(x)
  ROOT t = (f32[64], f32[64]) tuple(x, e)
}
)",
                            {});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->status, VerifyResult::Status::kOk);
  EXPECT_TRUE(r->exact);
  EXPECT_EQ(r->outputs[0].largest, 4);  // eighths up to 5/8 would be positive ones
  EXPECT_TRUE(r->outputs[1].bitwise);
}

// What has no value for them gets positive ones.
TEST(Verify, ProgramsWithALogarithmGetPositiveInputs) {
  const auto r = VerifyText(R"(HloModule m, num_partitions=4
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[64] parameter(0), sharding={devices=[4]<=[4]}
  l = f32[64] log(x)
  zero = f32[] constant(0)
  s = f32[] reduce(l, zero), dimensions={0}, to_apply=add
  ROOT t = (f32[64], f32[]) tuple(x, s)
}
)",
                            {});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->status, VerifyResult::Status::kOk) << VerifyJson(*r);
  EXPECT_LT(r->outputs[0].largest, 1);
}

}  // namespace
}  // namespace shardcall
