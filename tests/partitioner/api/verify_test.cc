// SPDX-License-Identifier: Apache-2.0
// Verify itself: that it finds wrong results, compares by type, and says what
// it cannot run; and partition's hooks.
#include "shardcall/partitioner/api/verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "tests/support/test_targets.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor F32(const std::vector<float>& v) {
  return Tensor::From(ElementType::kF32, {static_cast<int64_t>(v.size())}, v);
}
Tensor S32(const std::vector<int32_t>& v) {
  return Tensor::From(ElementType::kS32, {static_cast<int64_t>(v.size())}, v);
}

TEST(RunPartitioned, BackendsOfRanksWithoutACommunicatorAreAStatus) {
  const auto program = PartitionText(
      "HloModule m, num_partitions=2\nENTRY main {\n  ROOT x = f32[4] iota(), "
      "iota_dimension=0\n}\n",
      {});
  ASSERT_TRUE(program.ok()) << program.status();
  RunOptions options;
  options.backend = Backend::kMpi;
  EXPECT_THAT(RunPartitioned(**program, {}, options, nullptr),
              Fails("E303", "the mpi backend needs a communicator per process"));
}

TEST(Compare, NaNsOfOneSideAreTold) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const OutputDifference d = Compare(F32({5, 6}), F32({nan, nan}), false);
  EXPECT_FALSE(d.ok);
  EXPECT_FALSE(d.same_specials);
  EXPECT_EQ(d.largest, 6);
  EXPECT_TRUE(Compare(F32({nan, 6}), F32({nan, 6}), false).same_specials);
}

TEST(Compare, FloatsBitwiseOrWithinATolerance) {
  EXPECT_TRUE(Compare(F32({1, 2}), F32({1, 2}), true).ok);
  EXPECT_TRUE(Compare(F32({1, 2}), F32({1, 2}), true).bitwise);
  EXPECT_FALSE(Compare(F32({1, 2}), F32({1, 2.000001f}), true).ok);
  EXPECT_TRUE(Compare(F32({1, 2}), F32({1, 2.000001f}), false).ok);
  EXPECT_FALSE(Compare(F32({1, 2}), F32({1, 2.001f}), false).ok);
  EXPECT_TRUE(Compare(F32({1000, 0}), F32({1000, 0.0005f}), false).ok)
      << "held against the largest value";
}

TEST(Compare, ZerosOfOtherSignsDifferWhereValuesAreExact) {
  EXPECT_FALSE(Compare(F32({0, 1}), F32({-0.0f, 1}), true).ok);
  EXPECT_FALSE(Compare(F32({-0.0f, 1}), F32({0, 1}), true).ok);
  EXPECT_TRUE(Compare(F32({-0.0f, 1}), F32({-0.0f, 1}), true).ok);
  // What is rounded may become a zero of either sign, in another order of a sum.
  EXPECT_TRUE(Compare(F32({-0.0f, 1}), F32({0, 1}), false).ok);
}

TEST(Compare, NansAndInfinitiesMustAgree) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(Compare(F32({nan, inf}), F32({nan, inf}), false).ok);
  EXPECT_FALSE(Compare(F32({nan, 1}), F32({1, 1}), false).ok);
  EXPECT_FALSE(Compare(F32({1, 1}), F32({1, nan}), false).ok);
  EXPECT_FALSE(Compare(F32({inf}), F32({-inf}), false).ok);
  EXPECT_FALSE(Compare(F32({inf}), F32({3e38f}), false).ok);
}

TEST(Compare, IntegersAreExactAlways) {
  EXPECT_TRUE(Compare(S32({1, 2}), S32({1, 2}), false).ok);
  const OutputDifference d = Compare(S32({1, 1000000}), S32({1, 1000001}), false);
  EXPECT_FALSE(d.ok);
  EXPECT_EQ(d.max_abs_diff, 1);
}

TEST(Compare, OtherTypesOrShapesDiffer) {
  EXPECT_FALSE(Compare(F32({1}), S32({1}), false).ok);
  EXPECT_FALSE(Compare(F32({1}), F32({1, 1}), false).ok);
}

// A target whose rule promises what its handler does not do.
TEST(Verify, FindsARuleThatLies) {
  TargetRegistry targets;
  ASSERT_TRUE(targets.RegisterRule("test_row_scan", RuleText{"i j -> i j"}).ok());
  TextOptions options;
  options.targets = &targets;
  options.handlers = &TestHandlers();
  const auto r = VerifyText(R"(HloModule m, num_partitions=4
ENTRY main {
  x = s32[4,8] parameter(0), sharding={devices=[1,4]<=[4]}
  ROOT r = s32[4,8] custom-call(x), custom_call_target="test_row_scan"
}
)",
                            options);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->status, VerifyResult::Status::kMismatch);
  EXPECT_THAT(r->reason, HasSubstr("output 0 differs"));
  EXPECT_THAT(VerifyJson(*r), HasSubstr("\"status\": \"mismatch\""));
}

// A computation of the program's own rounds at each of 512 elements, so by shards it gives other
// last bits.
TEST(Verify, RoundingsOfAnUnknownReducerAreNoMismatch) {
  const auto r = VerifyText(R"(HloModule m, num_partitions=8
f {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  high = f32[] maximum(x, y)
  d = f32[] subtract(x, y)
  size = f32[] abs(d)
  down = f32[] negate(size)
  e = f32[] exponential(down)
  more = f32[] log-plus-one(e)
  both = f32[] add(high, more)
  sum = f32[] add(x, y)
  same = pred[] compare(d, d), direction=NE
  ROOT r = f32[] select(same, sum, both)
}

ENTRY main {
  x = f32[64,512] parameter(0), sharding={devices=[1,8]<=[8]}
  low = f32[] constant(-inf)
  ROOT r = f32[64] reduce(x, low), dimensions={1}, to_apply=f
}
)",
                            {});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->status, VerifyResult::Status::kOk) << r->reason;
  EXPECT_FALSE(r->exact);
  EXPECT_FALSE(r->outputs[0].bitwise);
}

TEST(Compare, TheSpreadOfInexactValuesIsAllowedUpToALimit) {
  const auto ok = [](float got, bool exact, double spread) {
    return Compare(F32({1, 2}), F32({1, got}), exact, false, spread).ok;
  };
  EXPECT_FALSE(ok(2.0001f, false, 0));
  EXPECT_TRUE(ok(2.0001f, false, 2e-4));
  EXPECT_FALSE(ok(2.0001f, true, 2e-4));
  EXPECT_FALSE(ok(2.001f, false, 1));
}

// A sum in bf16 in another order moves what is computed of it in f32, too.
TEST(Verify, WhatIsComputedOfNarrowSumsMayDifferByTheirRoundings) {
  const char text[] = R"(HloModule m, num_partitions=8
add {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}
ENTRY main {
  x = bf16[8,256] parameter(0), sharding={devices=[1,8]<=[8]}
  w = bf16[256,16] parameter(1), sharding={devices=[8,1]<=[8]}
  a = bf16[8,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = bf16[8,16] tanh(a)
  c = bf16[8,16] add(a, b)
  d = f32[8,16] convert(c)
  zero = f32[] constant(0)
  ROOT s = f32[16] reduce(d, zero), dimensions={0}, to_apply=add
}
)";
  for (uint64_t seed = 1; seed < 4; ++seed) {
    const auto result = VerifyText(text, {.seed = seed});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->status, VerifyResult::Status::kOk) << result->reason;
    EXPECT_GT(result->outputs[0].max_abs_diff, 1e-4 * result->outputs[0].largest);
  }
}

// (a b) c and a (b c) are the same for whole numbers, but for the signs of zeros.
TEST(Verify, ZerosOfComplexProductsInAnotherOrderMayHaveOtherSigns) {
  const char text[] = R"(HloModule m, num_partitions=8
times {
  l = c128[] parameter(0)
  r = c128[] parameter(1)
  ROOT p = c128[] multiply(l, r)
}
ENTRY main {
  x = c128[16,24] parameter(0), sharding={devices=[2,4]<=[8]}
  one = c128[] constant((1, 0))
  ROOT y = c128[16,24] reduce-window(x, one), window={size=16x1 pad=15_0x0_0}, to_apply=times, sharding={devices=[2,4]<=[8]}
}
)";
  for (uint64_t seed = 1; seed < 4; ++seed) {
    const auto result = VerifyText(text, {.seed = seed});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->status, VerifyResult::Status::kOk) << result->reason;
    EXPECT_EQ(result->outputs[0].max_abs_diff, 0);
    EXPECT_FALSE(result->outputs[0].bitwise);
  }
}

// A rule that says "replicated over the devices" of what differs on them.
TEST(Verify, FindsCopiesThatDiffer) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  ASSERT_TRUE(targets.RegisterBatchPartitionable("who", 1).ok());
  HandlerEntry entry;
  entry.target = "who";
  entry.source = "test";
  entry.host = [](const HandlerContext& c, absl::Span<const BufferView>,
                  absl::Span<const BufferView> out) {
    for (int64_t i = 0; i < out[0].num_elements(); ++i) {
      static_cast<int32_t*>(out[0].data)[i] = c.device_ordinal;
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(handlers.Register(std::move(entry)).ok());
  TextOptions options;
  options.targets = &targets;
  options.handlers = &handlers;
  const auto r = VerifyText(R"(HloModule m, num_partitions=2
ENTRY main {
  x = s32[4] parameter(0), sharding={replicated}
  ROOT r = s32[4] custom-call(x), custom_call_target="who", sharding={replicated}
}
)",
                            options);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->status, VerifyResult::Status::kMismatch);
  EXPECT_THAT(r->reason, HasSubstr("E321"));
  EXPECT_THAT(r->reason, HasSubstr("in output 0, %r"));
}

// A region over both halves of x, whose body makes z, f32[4], of y, its half of x.
std::string InRegion(const std::string& body) {
  return R"(HloModule m, num_partitions=2
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[8] parameter(0)
  s = f32[8] custom-call(x), custom_call_target="Sharding", sharding={devices=[2]<=[2]}
  y = f32[4] custom-call(s), custom_call_target="SPMDFullToShardShape", sharding={manual}
)" + body +
         R"(
  m = f32[4] custom-call(z), custom_call_target="Sharding", sharding={manual}
  ROOT r = f32[8] custom-call(m), custom_call_target="SPMDShardToFullShape", sharding={devices=[2]<=[2]}
}
)";
}

constexpr char kSumOfBoth[] =
    "  z = f32[4] all-reduce(y), channel_id=1, replica_groups={{0,1}}, "
    "use_global_device_ids=true, to_apply=add";

TEST(Verify, InAManualRegionGoesByValuesToo) {
  // Sums of thirds are rounded, thirds are not: each device has the bits of the reference.
  const auto fractions = VerifyText(InRegion("  z = f32[4] exponential(y)"), {});
  ASSERT_TRUE(fractions.ok()) << fractions.status();
  EXPECT_EQ(fractions->status, VerifyResult::Status::kOk) << VerifyJson(*fractions);
  EXPECT_TRUE(fractions->exact);
  const auto rounded = VerifyText(
      absl::StrReplaceAll(
          InRegion(kSumOfBoth),
          {{"all-reduce(y)", "all-reduce(w)"}, {"  z = ", "  w = f32[4] exponential(y)\n  z = "}}),
      {});
  ASSERT_TRUE(rounded.ok()) << rounded.status();
  EXPECT_EQ(rounded->status, VerifyResult::Status::kOk) << VerifyJson(*rounded);
  EXPECT_FALSE(rounded->exact);
}

TEST(Verify, SumsOverTheDevicesOfARegionAreExactWhereTheirTermsAre) {
  for (const auto& [most, exact] :
       std::vector<std::pair<float, bool>>{{8388607, true}, {8388608, false}}) {
    auto module = ParseText(InRegion(kSumOfBoth));
    ASSERT_TRUE(module.ok()) << module.status();
    const Tensor x =
        Tensor::From(ElementType::kF32, {8}, std::vector<float>{most, 1, 1, 1, most, -most, 3, 4});
    const auto r = Verify(*std::move(module), ToRunOptions({}), 0, {x}, nullptr);
    ASSERT_TRUE(r.ok()) << r.status();
    EXPECT_EQ(r->status, VerifyResult::Status::kOk) << VerifyJson(*r);
    EXPECT_EQ(r->exact, exact);
  }
}

TEST(Verify, SumsWhoseCombinerIsAnnotatedAreSums) {
  const auto r =
      VerifyText(absl::StrReplaceAll(InRegion(kSumOfBoth),
                                     {{"ROOT s = f32[] add(a, b)",
                                       "c = f32[] add(a, b)\n  ROOT s = f32[] custom-call(c), "
                                       "custom_call_target=\"Sharding\", sharding={replicated}"}}),
                 {});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->status, VerifyResult::Status::kOk) << VerifyJson(*r);
  EXPECT_TRUE(r->exact);
}

// Where the two parts of an element cancel, minus the sum is -0 and the sum of -1 and 1 is +0.
TEST(Verify, SumsThatAreNegatedBeforeTheyAreReducedMayBeZerosOfTheOtherSign) {
  const std::string text = R"(HloModule m, num_partitions=2
ENTRY main {
  x = f32[16,8] parameter(0), sharding={devices=[1,2]<=[2]}
  w = f32[8,16] parameter(1), sharding={devices=[2,1]<=[2]}
  d = f32[16,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  u = f32[16,16] custom-call(d), custom_call_target="Sharding", sharding={unreduced}
  n = f32[16,16] negate(u)
  v = f32[16,16] custom-call(n), custom_call_target="Sharding", sharding={unreduced}
  ROOT r = f32[16,16] custom-call(v), custom_call_target="Sharding", sharding={replicated}
}
)";
  bool other_zeros = false;
  for (uint64_t seed = 1; seed < 6; ++seed) {
    const auto r = VerifyText(text, {.seed = seed});
    ASSERT_TRUE(r.ok()) << r.status();
    EXPECT_EQ(r->status, VerifyResult::Status::kOk) << VerifyJson(*r);
    other_zeros = other_zeros || !r->outputs[0].same_zeros;
  }
  EXPECT_TRUE(other_zeros);
}

TEST(Verify, WhatADeviceSendsToAnotherStaysInexact) {
  const auto r = VerifyText(InRegion("  w = f32[4] exponential(y)\n  zero = f32[] constant(0)\n"
                                     "  t = f32[] reduce(w, zero), dimensions={0}, to_apply=add\n"
                                     "  u = f32[] collective-permute(t), channel_id=1, "
                                     "source_target_pairs={{0,1},{1,0}}\n"
                                     "  z = f32[4] broadcast(u), dimensions={}"),
                            {});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->status, VerifyResult::Status::kOk) << VerifyJson(*r);
  EXPECT_FALSE(r->exact);
}

TEST(Verify, TargetsWithoutAHandlerAreAnErrorThatNamesThem) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  ASSERT_TRUE(targets.RegisterBatchPartitionable("nowhere", 1).ok());
  TextOptions options;
  options.targets = &targets;
  options.handlers = &handlers;
  EXPECT_THAT(WhyNotEqual(R"(HloModule m, num_partitions=2
ENTRY main {
  x = s32[4] parameter(0), sharding={devices=[2]<=[2]}
  ROOT r = s32[4] custom-call(x), custom_call_target="nowhere"
}
)",
                          options),
              HasSubstr("nowhere"));
}

TEST(Verify, GivenInputsReplaceRandomOnes) {
  auto m = ParseText(R"(HloModule m, num_partitions=2
ENTRY main {
  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  ROOT r = f32[4] negate(x)
}
)");
  ASSERT_TRUE(m.ok());
  const auto r = Verify(*std::move(m), ToRunOptions({}), 1, {F32({1, 2, 3, 400})}, nullptr);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->status, VerifyResult::Status::kOk);
  EXPECT_EQ(r->num_partitions, 2);
  EXPECT_TRUE(r->exact);
  ASSERT_EQ(r->outputs.size(), 1);
  EXPECT_EQ(r->outputs[0].largest, 400);
}

TEST(Partition, DumpsEveryStageInOrder) {
  auto m = ParseText(R"(HloModule m, num_partitions=2
ENTRY main {
  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  ROOT r = f32[4] negate(x)
}
)");
  ASSERT_TRUE(m.ok());
  PartitionOptions options = ToRunOptions({}).partition;
  std::vector<std::string> stages;
  options.dump = [&](absl::string_view stage, const std::string& text) {
    stages.push_back(std::string(stage));
    EXPECT_FALSE(text.empty()) << stage;
  };
  ASSERT_TRUE(Partition(*std::move(m), options).ok());
  EXPECT_THAT(stages, testing::Contains("import"));
  EXPECT_THAT(stages, testing::Contains("plan"));
  EXPECT_THAT(stages, testing::Contains("localize"));
}

// An annotation of every kind, at A0 to A4; VALUE is x, or an annotated copy of it. Tuples
// and their elements have no code of their own and get the names that are made for them.
constexpr char kAnnotated[] = R"(HloModule m, num_partitions=1

body {
  p = (s32[], f32[4,2]) parameter(0)A0
  get-tuple-element = s32[] get-tuple-element(p), index=0
  get-tuple-element.1 = f32[4,2] get-tuple-element(p), index=1
  one = s32[] constant(1)
  n = s32[] add(get-tuple-element, one)
  w = f32[4,2] multiply(get-tuple-element.1, get-tuple-element.1)A1, metadata={op_name="w"}
  ROOT tuple = (s32[], f32[4,2]) tuple(n, w)
}

condition {
  q = (s32[], f32[4,2]) parameter(0)
  get-tuple-element.2 = s32[] get-tuple-element(q), index=0
  three = s32[] constant(3)
  ROOT l = pred[] compare(get-tuple-element.2, three), direction=LT
}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  x = f32[4,2]{0,1} parameter(0)A1
  zero = f32[] constant(0)
  k = s32[] constant(0)
  ANNOTATION
  y = f32[4,2] copy(VALUE)
  tuple.1 = (s32[], f32[4,2]) tuple(k, y)
  loop = (s32[], f32[4,2]) while(tuple.1), condition=condition, body=body
  get-tuple-element.3 = f32[4,2] get-tuple-element(loop), index=1
  u = f32[2] reduce(get-tuple-element.3, zero), dimensions={0}, to_apply=addA2, control-predecessors={y}
  c = f32[2] custom-call(u), custom_call_target="any", custom_call_has_side_effect=trueA3, frontend_attributes={kept="1"A4}, backend_config="b"
  ROOT tuple.2 = (f32[2], f32[4,2]) tuple(c, get-tuple-element.3)
}
)";

TEST(Partition, OneDeviceChangesNothingButAnnotations) {
  const std::string annotated = absl::StrReplaceAll(
      kAnnotated,
      {{"A0", ", sharding={{replicated}, {replicated}}"},
       {"A1", ", sharding={maximal device=0}"},
       {"A2", ", sharding={replicated}"},
       {"A3", ", sharding={maximal device=0}"},
       {"A4", ", xla.sdy.sharding=\"#sdy.sharding_per_value<[<@m, [{?}]>]>\""},
       {"ANNOTATION",
        "h = f32[4,2]{0,1} custom-call(x), custom_call_target=\"Sharding\", "
        "sharding={devices=[1,1]0}"},
       {"VALUE", "h"},
       {"num_partitions=1",
        "num_partitions=1, frontend_attributes={xla.sdy.meshes={m = #sdy.mesh<[\"a\"=1]>}}"}});
  const std::string plain = absl::StrReplaceAll(kAnnotated, {{"A0", ""},
                                                             {"A1", ""},
                                                             {"A2", ""},
                                                             {"A3", ""},
                                                             {"A4", ""},
                                                             {"ANNOTATION", ""},
                                                             {"VALUE", "x"}});
  const auto expected = ParseText(plain);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const std::string& text : {annotated, plain}) {
    const auto p = PartitionText(text, {});
    ASSERT_TRUE(p.ok()) << p.status();
    EXPECT_EQ(PrintModule((*p)->local.module, {}), PrintModule(*expected, {}));
  }
}

TEST(Backend, UnknownNamesAreRefused) {
  EXPECT_THAT(BackendFromName("gpu"), Fails("E330", "inprocess"));
  EXPECT_TRUE(BackendFromName("mpi").ok());
}

}  // namespace
}  // namespace shardcall
