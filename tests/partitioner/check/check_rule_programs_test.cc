// SPDX-License-Identifier: Apache-2.0
// The rule checker on calls of programs and of shipped targets, and what it needs and says.
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/check/check_rule.h"
#include "shardcall/partitioner/check/rule_matchers.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/sharding/base/status.h"
#include "tests/support/test_targets.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;
using Views = absl::Span<const BufferView>;

// A kernel over f32 arrays, which may refuse by a message.
using Kernel = std::function<std::string(Views in, Views out)>;

float* F(const BufferView& v) { return static_cast<float*>(v.data); }

HostHandler Handler(Kernel kernel) {
  return [kernel](const HandlerContext&, Views in, Views out) -> absl::Status {
    const std::string refusal = kernel(in, out);
    return refusal.empty() ? absl::OkStatus() : absl::InvalidArgumentError(refusal);
  };
}

const RuleVerdict kHolds = RuleVerdict::kHolds;
const RuleVerdict kIncorrect = RuleVerdict::kIncorrect;
const RuleVerdict kMissing = RuleVerdict::kMissing;

absl::StatusOr<RuleCheck> CheckedIn(const std::string& hlo, const std::string& target) {
  auto module = ParseModule(std::make_shared<const std::string>(hlo), std::make_shared<Context>(),
                            "test.hlo");
  if (!module.ok()) return module.status();
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<CheckedCall> calls,
                             CallsOfModule(target, TestTargets(), *module));
  return CheckRule(calls, 0, {.targets = &TestTargets(), .handlers = &TestHandlers()});
}

std::string Call(const std::string& target, const std::string& attributes = "") {
  return "HloModule m\n\nENTRY e {\n  x = f32[6,4] parameter(0)\n  ROOT c = f32[6,4] "
         "custom-call(x), custom_call_target=\"" +
         target + "\", api_version=API_VERSION_TYPED_FFI" + attributes + "\n}\n";
}

TEST(CheckRule, TakesTheShapesOfBatchRulesAndCallbacksFromAProgram) {
  for (const char* target : {"test_negate", "test_row_scan", "test_twice"}) {
    const auto check = CheckedIn(Call(target), target);
    ASSERT_TRUE(check.ok()) << check.status();
    EXPECT_EQ(check->verdict, kHolds) << RuleCheckJson(*check);
    EXPECT_GT(check->trials, 3) << target;
  }
}

TEST(CheckRule, FindsTooManyBatchDimensions) {
  const auto check = CheckedIn(
      Call(
          "test_row_scan",
          ", frontend_attributes={xla.sdy.sharding_rule=\"#sdy.op_sharding_rule<([i, j])->([i, j]) "
          "{i=6, j=4}, custom>\"}"),
      "test_row_scan");
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->verdict, kIncorrect) << RuleCheckJson(*check);
}

TEST(CheckRule, SaysWhatItNeeds) {
  const auto batch = CallsOfTarget("test_negate", TestTargets(), TestHandlers());
  EXPECT_THAT(std::string(batch.status().message()), HasSubstr("E191"));
  const auto unknown = CallsOfTarget("nothing", TestTargets(), TestHandlers());
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("E101"));
  const auto absent = CheckedIn(Call("test_twice"), "test_negate");
  EXPECT_THAT(std::string(absent.status().message()), HasSubstr("E191"));
}

TEST(CheckRule, SaysThatNoCallIsTaken) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  ASSERT_TRUE(targets.RegisterRule("k", {.rule = "i -> i"}).ok());
  ASSERT_TRUE(handlers
                  .Register({.target = "k", .host = Handler([](Views, Views) {
                                              return std::string("only on Sundays");
                                            })})
                  .ok());
  const auto calls = CallsOfTarget("k", targets, handlers);
  ASSERT_TRUE(calls.ok());
  const auto check = CheckRule(*calls, 0, {.targets = &targets, .handlers = &handlers});
  EXPECT_THAT(std::string(check.status().message()),
              testing::AllOf(HasSubstr("E190"), HasSubstr("only on Sundays")));
  // The handler's own error has a fix too, which does not stand beside this one's.
  const std::vector<std::string> fixes = absl::StrSplit(check.status().message(), "Fix: ");
  EXPECT_EQ(fixes.size(), 2u) << check.status();
}

TEST(CheckRule, WhatAHandlerSaysStandsBesideTheCallItSaysItOf) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  ASSERT_TRUE(targets.RegisterRule("k", {.rule = "i -> i"}).ok());
  ASSERT_TRUE(handlers
                  .Register({.target = "k", .host = Handler([](Views in, Views) {
                                              return absl::StrCat("not ", in[0].ToString());
                                            })})
                  .ok());
  const auto calls = CallsOfTarget("k", targets, handlers);
  ASSERT_TRUE(calls.ok());
  const std::string said(
      CheckRule(*calls, 0, {.targets = &targets, .handlers = &handlers}).status().message());
  const size_t at = said.find("not ");
  ASSERT_NE(at, said.npos) << said;
  const std::string shape = said.substr(at + 4, said.find(']', at) - at - 3);
  EXPECT_THAT(said.substr(said.find("found ")), HasSubstr(shape));
}

TEST(CheckRule, AShapeFunctionThatContradictsTheHandlerIsIncorrect) {
  for (int64_t more : {0, 1}) {
    TargetRegistry targets;
    HandlerRegistry handlers;
    ASSERT_TRUE(targets.RegisterRule("k", {.rule = "i -> i"}).ok());
    ASSERT_TRUE(targets
                    .RegisterShapeInference(
                        "k",
                        [more](const ShapeRequest& call) -> absl::StatusOr<const Shape*> {
                          return call.context->MakeArray(ElementType::kF32,
                                                         {call.operands[0]->dim(0) + more});
                        })
                    .ok());
    ASSERT_TRUE(handlers
                    .Register({.target = "k", .host = Handler([](Views in, Views out) {
                                                if (in[0].type != ElementType::kF32)
                                                  return std::string("f32");
                                                std::memcpy(out[0].data, in[0].data,
                                                            in[0].byte_size());
                                                return std::string();
                                              })})
                    .ok());
    const auto calls = CallsOfTarget("k", targets, handlers);
    ASSERT_TRUE(calls.ok());
    const auto check = CheckRule(*calls, 0, {.targets = &targets, .handlers = &handlers});
    ASSERT_TRUE(check.ok()) << check.status();
    EXPECT_EQ(check->verdict, more == 0 ? RuleVerdict::kHolds : RuleVerdict::kIncorrect);
    if (more != 0) EXPECT_THAT(check->findings[0].message, HasSubstr("E023"));
  }
}

// A kernel of other types, and types that it refuses.
RuleCheck CheckedWithTypes(std::vector<ElementType> types, RuleText rule, std::string signature) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  EXPECT_TRUE(targets.RegisterRules("k", {{.text = std::move(rule), .types = signature}}).ok());
  HandlerEntry entry;
  entry.target = "k";
  entry.host = [types](const HandlerContext&, Views in, Views out) -> absl::Status {
    std::vector<BufferView> all(in.begin(), in.end());
    all.insert(all.end(), out.begin(), out.end());
    for (size_t t = 0; t < all.size(); ++t) {
      if (all[t].type != types[t]) return absl::InvalidArgumentError("another type");
      if (all[t].dims != all[0].dims) return absl::InvalidArgumentError("another shape");
    }
    for (const BufferView& v : out) std::memset(v.data, 0, v.byte_size());
    return absl::OkStatus();
  };
  EXPECT_TRUE(handlers.Register(std::move(entry)).ok());
  const auto calls = CallsOfTarget("k", targets, handlers);
  EXPECT_TRUE(calls.ok()) << calls.status();
  const auto check = CheckRule(*calls, 0, {.targets = &targets, .handlers = &handlers});
  EXPECT_TRUE(check.ok()) << check.status();
  return check.ok() ? *check : RuleCheck();
}

TEST(CheckRule, FindsTheElementTypesThatAKernelTakes) {
  const ElementType f32 = ElementType::kF32, f64 = ElementType::kF64, c64 = ElementType::kC64,
                    s32 = ElementType::kS32, bf16 = ElementType::kBF16;
  for (const std::string signature : {"", "T, s32 -> T, real(T)"}) {
    for (const std::vector<ElementType>& types :
         {std::vector<ElementType>{f64, s32, f64, f64}, {c64, s32, c64, f32}}) {
      const RuleCheck check = CheckedWithTypes(types, {.rule = "i, i -> i, i"}, signature);
      EXPECT_EQ(check.verdict, kHolds) << RuleCheckJson(check);
      EXPECT_GT(check.trials, 10);
    }
  }
  EXPECT_EQ(CheckedWithTypes({bf16, bf16}, {.rule = "i -> i"}, "").verdict, kHolds);
  EXPECT_EQ(
      CheckedWithTypes({f64, f64}, {.rule = "i -> i", .need_replication = {"i"}}, "T -> T").verdict,
      kMissing);
}

TEST(RuleHolds, IsWhatAllShippedTargetsDo) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  ASSERT_TRUE(RegisterBuiltinTargets(targets).ok());
  ASSERT_TRUE(RegisterBuiltinHandlers(handlers).ok());
  for (const TargetRule* rule : targets.List()) {
    // Their sizes are operands, which random numbers contradict.
    const bool untyped =
        rule->target.rfind("blas_", 0) == 0 ||
        (rule->target.rfind("lapack_", 0) == 0 && rule->alternatives[0].types.empty());
    // Kernels of JAX's that have rules here run in its own runtime alone.
    const bool elsewhere = !handlers.Find(rule->target, "Host").ok();
    if (untyped || elsewhere) continue;
    EXPECT_THAT(rule->target, RuleHolds(targets, handlers, 1));
  }
}

TEST(CheckRule, WhatIsForManualRegionsAloneIsUntested) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  ASSERT_TRUE(RegisterBuiltinTargets(targets).ok());
  ASSERT_TRUE(RegisterBuiltinHandlers(handlers).ok());
  const auto calls = CallsOfTarget("nccl_allreduce", targets, handlers);
  ASSERT_TRUE(calls.ok()) << calls.status();
  const auto report = CheckRule(*calls, 0, {.targets = &targets, .handlers = &handlers});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->findings.empty());
  EXPECT_THAT(report->untested, testing::Contains(HasSubstr("E122")));
}

}  // namespace
}  // namespace shardcall
