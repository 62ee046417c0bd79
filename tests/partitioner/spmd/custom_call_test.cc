// SPDX-License-Identifier: Apache-2.0
// Custom calls at the three levels, under every sharding, run by test handlers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/program_family.h"
#include "tests/support/test_targets.h"

namespace shardcall {
namespace {

// What is wrong is said of the shape, or of the registration, where that is at fault.
TEST(CustomCalls, AWrongWrittenShapeIsSaidBeforeWhatItsRuleMakesOfIt) {
  TargetRegistry targets;
  ASSERT_TRUE(RegisterBuiltinTargets(targets).ok());
  ASSERT_TRUE(targets.RegisterBatchPartitionable("deep", 5).ok());
  TextOptions options;
  options.targets = &targets;
  const auto refused = [&](const std::string& call) {
    return PartitionText(
               "HloModule m, num_partitions=2\nENTRY e {\n"
               "x = f32[8,4] parameter(0), sharding={devices=[2,1]<=[2]}\nROOT " +
                   call + "\n}",
               options)
        .status();
  };
  const absl::Status shape =
      refused("c = f32[8,5] custom-call(x), custom_call_target=\"custom_relu\"");
  EXPECT_THAT(shape, Fails("E023", "expected f32[8,4], found f32[8,5]"));
  EXPECT_THAT(shape, Fails("E023", "the call of \"custom_relu\", %c"));
  EXPECT_THAT(refused("c = f32[8,4] custom-call(x), custom_call_target=\"deep\""),
              Fails("E111", "declare fewer batch dimensions"));
}

// A maximum of complex numbers does not exist, so that no shard can give a part of one.
TEST(CustomCalls, AFactorWhoseReductionTheResultDoesNotHaveIsWhole) {
  TargetRegistry targets;
  ASSERT_TRUE(
      targets.RegisterRule("most", {.rule = "m k -> m", .reduction = {{"k", PartialOp::kMax}}})
          .ok());
  TextOptions options;
  options.targets = &targets;
  for (const auto& [type, gathers, reduces] :
       {std::tuple("f32", 0, 1), std::tuple("c64", 1, 0), std::tuple("f8e8m0fnu", 1, 0)}) {
    SCOPED_TRACE(type);
    const auto p = PartitionText(
        absl::StrCat("HloModule m, num_partitions=2\nENTRY e {\n"
                     "x = f32[8,4] parameter(0), sharding={devices=[1,2]<=[2]}\nROOT c = ",
                     type, "[8] custom-call(x), custom_call_target=\"most\"\n}"),
        options);
    ASSERT_TRUE(p.ok()) << p.status();
    EXPECT_EQ(CountOpcode(**p, Opcode::kAllGather), gathers);
    EXPECT_EQ(CountOpcode(**p, Opcode::kAllReduce), reduces);
  }
}

TEST(CustomCalls, PadsBeyondATypeAreItsExtremes) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::vector<std::tuple<std::string, double, std::string>> pads = {
      {"s32", -kInf, "-2147483648"},
      {"s32", kInf, "2147483647"},
      {"s32", 1e10, "2147483647"},
      {"s32", -7, "-7"},
      {"s64", kInf, "9223372036854775807"},
      {"s8", -kInf, "-128"},
      {"s8", 300, "127"},
      {"s8", -128, "-128"},
      {"s4", -kInf, "-8"},
      {"u8", -7, "0"},
      {"u8", kInf, "255"},
      {"pred", -kInf, "false"},
      {"pred", 1, "true"},
      {"f32", -kInf, "-inf"},
      {"f32", 0.5, "0.5"},
      {"f8e4m3fn", -kInf, "-448"},
      {"f8e4m3fn", 1e10, "448"},
      {"f8e4m3b11fnuz", kInf, "30"},
  };
  for (const auto& [type, pad, made] : pads) {
    SCOPED_TRACE(absl::StrCat(type, " ", pad));
    TargetRegistry targets;
    ASSERT_TRUE(targets.RegisterRule("padded", {.rule = "m k -> m k", .pad = {{"k", pad}}}).ok());
    TextOptions options;
    options.targets = &targets;
    const auto p = PartitionText(
        absl::StrReplaceAll("HloModule m, num_partitions=2\nENTRY e {\n"
                            "x = @[8,5] parameter(0), sharding={devices=[1,2]<=[2]}\n"
                            "ROOT c = @[8,5] custom-call(x), custom_call_target=\"padded\", "
                            "sharding={devices=[1,2]<=[2]}\n}",
                            {{"@", type}}),
        options);
    ASSERT_TRUE(p.ok()) << p.status();
    EXPECT_THAT(LocalText(**p), testing::HasSubstr(absl::StrCat(type, "[] constant(", made, ")")));
  }
}

const std::vector<Sizes> kSizes = {
    {{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 7}}, {{'A', 3}, {'B', 5}}, {{'A', 1}, {'B', 8}}};

TextOptions WithTestTargets() {
  TextOptions options;
  options.targets = &TestTargets();
  options.handlers = &TestHandlers();
  return options;
}

TEST(CustomCall, BatchDimsStayShardedAndTheOthersAreGathered) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  n = s32[@A,@B] custom-call(x), custom_call_target="test_negate"
  ROOT r = s32[@A,@B] custom-call(n), custom_call_target="test_row_scan"<1:2>
)",
                .sizes = kSizes,
                .max_cases = 400,
                .options = WithTestTargets(),
                .no_fallback = true});
}

TEST(CustomCall, RulesThatReduceGiveSumsOverShards) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  s = s32[@A] custom-call(x), custom_call_target="test_sum"<1:1>
  b = s32[@A,@B] broadcast(s), dimensions={0}
  ROOT r = s32[@A,@B] add(b, x)<2:2>
)",
                .sizes = kSizes,
                .max_cases = 400,
                .options = WithTestTargets(),
                .no_fallback = true});
}

TEST(CustomCall, FactorsSharedByOperands) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  g = f32[@B] parameter(1)<1:1>
  ROOT r = f32[@A,@B] custom-call(x, g), custom_call_target="test_scale"<2:2>
)",
                .sizes = kSizes,
                .max_cases = 400,
                .options = WithTestTargets(),
                .no_fallback = true});
}

TEST(CustomCall, CallbacksChooseTheirShardings) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  t = s32[@A,@B] custom-call(x), custom_call_target="test_twice"<1:2>
  s = s32[@B] custom-call(t), custom_call_target="test_total"<2:1>
  ROOT r = (s32[@A,@B], s32[@B]) tuple(t, s)
)",
                .sizes = kSizes,
                .max_cases = 400,
                .options = WithTestTargets(),
                .no_fallback = true});
}

TEST(CustomCall, UnregisteredTargetsMayBeReplicatedOnRequest) {
  TextOptions options = WithTestTargets();
  static TargetRegistry* const kNone = new TargetRegistry;
  options.targets = kNone;
  options.allow_replicate = {"test_row_scan"};
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  ROOT r = s32[@A,@B] custom-call(x), custom_call_target="test_row_scan"<1:2>
)",
                .sizes = kSizes,
                .max_cases = 200,
                .options = options});
}

TEST(CustomCall, RulesThatTheCallItselfCarries) {
  TextOptions options = WithTestTargets();
  static TargetRegistry* const kNone = new TargetRegistry;
  options.targets = kNone;
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  n = s32[@A,@B] custom-call(x), custom_call_target="test_negate", frontend_attributes={xla.sdy.sharding_rule="#sdy.op_sharding_rule<([i, j])->([i, j]) {i=@A, j=@B}>"}
  ROOT r = s32[@A,@B] add(n, x)<1:2>
)",
                .sizes = kSizes,
                .max_cases = 100,
                .options = options,
                .no_fallback = true});
}

TEST(CustomCall, ShippedKernelsAgreeWithOneDevice) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  w = f32[@B] parameter(1)<1:1>
  n = f32[@A,@B] custom-call(x, w), custom_call_target="rms_norm", api_version=API_VERSION_TYPED_FFI, backend_config={eps = 1.000000e-05 : f32}
  ROOT r = f32[@A,@B] add(n, x)<2:2>
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

// y[i, j] is the sum over all operands of weighted elements of row i.
absl::Status WeightedRows(const HandlerContext&, absl::Span<const BufferView> in,
                          absl::Span<const BufferView> out) {
  float* y = static_cast<float*>(out[0].data);
  const int64_t rows = out[0].dims[0], columns = out[0].dims[1];
  for (int64_t i = 0; i < rows * columns; ++i) y[i] = 0;
  for (size_t k = 0; k < in.size(); ++k) {
    const float* x = static_cast<const float*>(in[k].data);
    const int64_t n = in[k].num_elements() / rows;
    for (int64_t i = 0; i < rows * n; ++i) {
      y[i / n * columns + static_cast<int64_t>(k + i % n) % columns] +=
          static_cast<float>(i % n % 3) * x[i];
    }
  }
  return absl::OkStatus();
}

struct Registries {
  TargetRegistry targets;
  HandlerRegistry handlers;
  TextOptions options() const {
    TextOptions o;
    o.targets = &targets;
    o.handlers = &handlers;
    return o;
  }
};

// Each operand has three factors of its own: with 22 of them there are more than 64.
TEST(CustomCall, TakesAnyNumberOfFactors) {
  Registries r;
  ASSERT_TRUE(r.targets.RegisterBatchPartitionable("weighted_rows", 1).ok());
  ASSERT_TRUE(
      r.handlers.Register({.target = "weighted_rows", .source = "test", .host = WeightedRows})
          .ok());
  for (int operands : {21, 22, 23, 44, 100}) {
    std::string text = "HloModule m, num_partitions=4\nENTRY main {\n", names;
    for (int k = 0; k < operands; ++k) {
      absl::StrAppend(&text, "x", k, " = f32[4,4,2,2] parameter(", k,
                      "), sharding={devices=[2,2,1,1]<=[4]}\n");
      absl::StrAppend(&names, k ? ", x" : "x", k);
    }
    absl::StrAppend(&text, "ROOT y = f32[4,2] custom-call(", names,
                    "), custom_call_target=\"weighted_rows\", "
                    "api_version=API_VERSION_TYPED_FFI\n}");
    EXPECT_EQ(WhyNotEqual(text, r.options()), "") << operands << " operands";
  }
}

TEST(CustomCall, EmptyOperandsAndResultsAreShardedAsTheirRuleSays) {
  Registries r;
  ASSERT_TRUE(r.handlers
                  .Register({.target = "attend",
                             .source = "test",
                             .host = [](const HandlerContext&, absl::Span<const BufferView> in,
                                        absl::Span<const BufferView> out) -> absl::Status {
                               const float* x = static_cast<const float*>(in[0].data);
                               float* y = static_cast<float*>(out[0].data);
                               for (int64_t i = 0; i < in[0].num_elements(); ++i) y[i] = 2 * x[i];
                               if (in[1].num_elements() + in[2].num_elements() +
                                       out[1].num_elements() !=
                                   0) {
                                 return absl::InvalidArgumentError("not empty");
                               }
                               return absl::OkStatus();
                             }})
                  .ok());
  const std::string call = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  bias = f32[0] parameter(1)<1:1>
  mask = f32[@A,0] parameter(2)<2:2>
  c = (f32[@A,@B], f32[0,@A]) custom-call(x, bias, mask), custom_call_target="attend"RULE
  y = f32[@A,@B] get-tuple-element(c), index=0
  z = f32[0,@A] get-tuple-element(c), index=1
  ROOT t = (f32[@A,@B], f32[0,@A]) tuple(y, z)
)";
  const std::string own =
      R"(, frontend_attributes={xla.sdy.sharding_rule="#sdy.op_sharding_rule<([i, j], [k], )"
      R"([i, l])->([i, j], [m, i]) {i=@A, j=@B, k=0, l=0, m=0} need_replication={j, k}, custom>"})";
  VerifyFamily({.text = absl::StrReplaceAll(call, {{"RULE", own}}),
                .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 5}, {'B', 3}}},
                .max_cases = 60,
                .options = r.options()});
  ASSERT_TRUE(r.targets
                  .RegisterRule("attend",
                                {.rule = "i j, k, i l -> i j, l i", .need_replication = {"j", "k"}})
                  .ok());
  VerifyFamily({.text = absl::StrReplaceAll(call, {{"RULE", ""}}),
                .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 5}, {'B', 3}}},
                .max_cases = 60,
                .options = r.options()});
}

// A rule of the program that neither reduces nor keeps whole what only operands have.
TEST(CustomCall, WhatAProgramsRuleLeavesOpenIsWhole) {
  TextOptions options = WithTestTargets();
  static TargetRegistry* const kNone = new TargetRegistry;
  options.targets = kNone;
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  ROOT s = s32[@A] custom-call(x), custom_call_target="test_sum", frontend_attributes={xla.sdy.sharding_rule="#sdy.op_sharding_rule<([i, j])->([i]) {i=@A, j=@B}, custom>"}<1:1>
)",
                .sizes = kSizes,
                .max_cases = 200,
                .options = options,
                .no_fallback = true});
}

TEST(CustomCall, BatchDimsThatTheResultLacksAreGathered) {
  Registries r;
  ASSERT_TRUE(r.targets.RegisterBatchPartitionable("total", 1).ok());
  ASSERT_TRUE(r.handlers
                  .Register({.target = "total",
                             .source = "test",
                             .host = [](const HandlerContext&, absl::Span<const BufferView> in,
                                        absl::Span<const BufferView> out) -> absl::Status {
                               int32_t sum = 0;
                               for (int64_t i = 0; i < in[0].num_elements(); ++i) {
                                 sum += static_cast<const int32_t*>(in[0].data)[i];
                               }
                               *static_cast<int32_t*>(out[0].data) = sum;
                               return absl::OkStatus();
                             }})
                  .ok());
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  ROOT s = s32[] custom-call(x), custom_call_target="total"
)",
                .sizes = kSizes,
                .max_cases = 60,
                .options = r.options()});
}

// A kernel that numbers the columns of its result, as an iota does.
struct Numbered {
  explicit Numbered(RuleText rule) {
    EXPECT_TRUE(targets.RegisterRule("numbered", std::move(rule)).ok());
    HandlerEntry entry;
    entry.target = "numbered";
    entry.host = [](const HandlerContext&, absl::Span<const BufferView> in,
                    absl::Span<const BufferView> out) {
      const int64_t rows = out[0].dims[0], columns = out[0].dims[1];
      for (int64_t k = 0; k < rows * columns; ++k) {
        static_cast<int32_t*>(out[0].data)[k] =
            static_cast<const int32_t*>(in[0].data)[k / columns] +
            static_cast<int32_t>(k % columns);
      }
      return absl::OkStatus();
    };
    EXPECT_TRUE(handlers.Register(std::move(entry)).ok());
    options.targets = &targets;
    options.handlers = &handlers;
  }
  TargetRegistry targets;
  HandlerRegistry handlers;
  TextOptions options;
};

std::string NumberedCall(const std::string& attributes) {
  return "HloModule m, num_partitions=4\n\nENTRY e {\n"
         "  x = s32[8] parameter(0), sharding={devices=[4]<=[4]}\n"
         "  ROOT c = s32[8,12] custom-call(x), custom_call_target=\"numbered\", "
         "sharding={devices=[1,4]<=[4]}" +
         attributes + "\n}\n";
}

TEST(ResultFactors, ThatNoOperandHasAreComputedWhole) {
  const Numbered by_rule({.rule = "d -> d n"});
  EXPECT_EQ(WhyNotEqual(NumberedCall(""), by_rule.options), "");
  // So with a rule of the program's own.
  EXPECT_EQ(WhyNotEqual(NumberedCall(", frontend_attributes={xla.sdy.sharding_rule="
                                     "\"#sdy.op_sharding_rule<([i])->([i, j]) {i=8, j=12}, "
                                     "custom>\"}"),
                        by_rule.options),
            "");
}

TEST(ResultFactors, AreShardedWhereTheRuleSaysSo) {
  const Numbered blocked({.rule = "d -> d n", .blocked = {"n"}});
  const auto p = PartitionText(NumberedCall(""), blocked.options);
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(LocalText(**p), testing::HasSubstr("s32[8,3]{1,0} custom-call("));
}

// Nothing in such a rule says whether result 1 is a sum over the shards of c.
TEST(CustomCall, AFactorThatOneResultLacksIsWarnedOfOnceForCallsAlike) {
  const auto warnings = [](const std::string& rule, const std::vector<std::string>& whole) {
    TargetRegistry targets;
    EXPECT_TRUE(RegisterBuiltinTargets(targets).ok());
    EXPECT_TRUE(targets.RegisterRule("two", {.rule = rule, .need_replication = whole}).ok());
    const std::string text = R"(HloModule m, num_partitions=2

ENTRY main {
  x = f32[8,4] parameter(0), sharding={devices=[1,2]<=[2]}
  a = (f32[8,4], f32[8]) custom-call(x), custom_call_target="two"
  b = (f32[8,4], f32[8]) custom-call(x), custom_call_target="two"
  y = f32[8,4] get-tuple-element(a), index=0
  z = f32[8] get-tuple-element(b), index=1
  ROOT r = (f32[8,4], f32[8]) tuple(y, z)
}
)";
    TextOptions options;
    options.targets = &targets;
    const auto program = PartitionText(text, options);
    EXPECT_TRUE(program.ok()) << program.status();
    return (*program)->local.warnings;
  };
  EXPECT_THAT(warnings("r c -> r c, r", {}),
              testing::ElementsAre(testing::HasSubstr(
                  "W204 target \"two\" (%a) runs on shards of factor c, which result 1 does not "
                  "have")));
  EXPECT_THAT(warnings("r c -> r c, r", {"c"}), testing::IsEmpty());
}

}  // namespace
}  // namespace shardcall
