// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/registry.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/custom_call/default_rules.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;

class RegistryTest : public ::testing::Test {
 protected:
  const Shape* F32(std::vector<int64_t> dims) {
    return context_.MakeArray(ElementType::kF32, dims);
  }
  // The rule of a call of a shipped target, or the error.
  std::string Builtin(absl::string_view target, std::vector<const Shape*> operands,
                      std::vector<const Shape*> results, absl::string_view config = "") {
    TargetRegistry registry;
    const absl::Status status = RegisterBuiltinTargets(registry);
    EXPECT_TRUE(status.ok()) << status;
    const TargetRule* target_rule = registry.Find(target, config);
    if (target_rule == nullptr) return "not registered";
    absl::StatusOr<ShardingRule> rule = target_rule->Instantiate(config, operands, results);
    return rule.ok() ? rule->ToString() : std::string(rule.status().message());
  }
  Context context_;
};

TEST_F(RegistryTest, EqualRegistrationsPassAndDifferentOnesShowBoth) {
  TargetRegistry r;
  EXPECT_TRUE(r.RegisterRule("t", {.rule = "a b -> a b"}).ok());
  EXPECT_TRUE(r.RegisterRule("t", {.rule = "a b -> a b"}).ok());
  const absl::Status s = r.RegisterRule("t", {.rule = "a b -> b a"});
  EXPECT_EQ(s.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(DiagnosticCode(s), "E105");
  EXPECT_THAT(std::string(s.message()), HasSubstr("a b -> a b"));
  EXPECT_THAT(std::string(s.message()), HasSubstr("a b -> b a"));
  EXPECT_EQ(DiagnosticCode(r.RegisterBatchPartitionable("t", 1)), "E105");
}

TEST_F(RegistryTest, CallbacksAreNeverEqual) {
  TargetRegistry r;
  EXPECT_TRUE(r.RegisterCustomCallPartitioner("t", {}).ok());
  EXPECT_EQ(DiagnosticCode(r.RegisterCustomCallPartitioner("t", {})), "E105");
}

TEST_F(RegistryTest, CallbacksWithoutAnIdentityAreToldWhatWouldMakeThemEqual) {
  TargetRegistry r;
  const auto partition = [](PartitionContext&) { return absl::OkStatus(); };
  ASSERT_TRUE(r.RegisterCustomCallPartitioner("t", {.partition = partition}).ok());
  const std::string none(r.RegisterCustomCallPartitioner("t", {.partition = partition}).message());
  EXPECT_THAT(none, HasSubstr("found callbacks without an identity, version 1"));
  EXPECT_THAT(none, HasSubstr("give equal ones an equal PartitionerCallbacks::identity"));
  static const int kOne = 1, kTwo = 2;
  ASSERT_TRUE(r.RegisterCustomCallPartitioner("u", {.identity = {&kOne}}).ok());
  EXPECT_TRUE(r.RegisterCustomCallPartitioner("u", {.identity = {&kOne}}).ok());
  const std::string other(r.RegisterCustomCallPartitioner("u", {.identity = {&kTwo}}).message());
  EXPECT_THAT(other, HasSubstr(absl::StrCat("identity {0x",
                                            absl::Hex(reinterpret_cast<uintptr_t>(&kTwo)), "}")));
}

TEST_F(RegistryTest, CallbacksOfOneIdentityWithAnotherFlagAreNotEqual) {
  static const int kOne = 1;
  TargetRegistry r;
  ASSERT_TRUE(r.RegisterCustomCallPartitioner("t", {.identity = {&kOne}}).ok());
  const absl::Status other = r.RegisterCustomCallPartitioner(
      "t", {.propagate_reads_result_alone = true, .identity = {&kOne}});
  EXPECT_EQ(DiagnosticCode(other), "E105");
  EXPECT_THAT(std::string(other.message()), HasSubstr("propagating from the result alone"));
}

TEST_F(RegistryTest, RulesThatDifferShowWhereTheyDo) {
  const std::pair<RuleText, const char*> cases[] = {
      {{.rule = "a b -> a b", .blocked = {"a"}}, "blocked={a}"},
      {{.rule = "a b -> a b", .pad = {{"b", 1}}}, "pad={b:1}"},
      {{.rule = "a b -> a b", .need_replication = {"b"}}, "need_replication={b}"},
  };
  for (const auto& [text, part] : cases) {
    TargetRegistry r;
    ASSERT_TRUE(r.RegisterRule("t", {.rule = "a b -> a b"}).ok());
    EXPECT_THAT(std::string(r.RegisterRule("t", text).message()), HasSubstr(part));
  }
}

TEST_F(RegistryTest, RestoringUndoesWhatTookThePlaceOfADefault) {
  TargetRegistry r;
  const std::string source(internal::kDefaultSource);
  ASSERT_TRUE(r.RegisterBatchPartitionable("d", kBatchDimsOfCall, "", source).ok());
  ASSERT_TRUE(r.RegisterRule("e", {.rule = "..., ... -> ..."}, "", source).ok());
  ASSERT_TRUE(
      r.RegisterVjp(
           "e", {.target = "e_bwd", .arguments = {VjpArgument::Cotangent(0)}, .gradients = {0, 1}})
          .ok());
  const TargetRegistry before = r;
  const TargetRule* const d = r.Find("d", "");
  ASSERT_TRUE(r.RegisterBatchPartitionable("d", 2, "", "manifest").ok());
  ASSERT_TRUE(
      r.RegisterRule("e", {.rule = "i, i -> i", .need_replication = {"i"}}, "", "manifest").ok());
  // The VJP's rule follows from the new one.
  EXPECT_EQ(r.Find("e_bwd", "")->text.need_replication, std::vector<std::string>{"i"});
  r.Restore(before);
  EXPECT_EQ(r.Find("d", ""), d);
  EXPECT_EQ(d->batch_dims, kBatchDimsOfCall);
  EXPECT_EQ(d->source, source);
  EXPECT_EQ(r.Find("e", "")->text.rule, "..., ... -> ...");
  EXPECT_EQ(r.Find("e_bwd", "")->text.rule, "... -> ..., ...");
  // The default can be replaced again.
  EXPECT_TRUE(r.RegisterBatchPartitionable("d", 2, "", "manifest").ok());
}

TEST_F(RegistryTest, APadOfNanIsEqualToItself) {
  TargetRegistry r;
  const RuleText text{.rule = "a b -> a",
                      .reduction = {{"b", PartialOp::kMax}},
                      .pad = {{"b", std::numeric_limits<double>::quiet_NaN()}}};
  EXPECT_TRUE(r.RegisterRule("t", text).ok());
  EXPECT_TRUE(r.RegisterRule("t", text).ok());
}

TEST_F(RegistryTest, BackendConfigIsAskedFirstThenTheTargetAlone) {
  TargetRegistry r;
  EXPECT_TRUE(r.RegisterRule("CustomSPMDPartitioning", {.rule = "a -> a"}, "1234").ok());
  EXPECT_EQ(r.Find("CustomSPMDPartitioning", "77"), nullptr);
  EXPECT_EQ(r.Find("CustomSPMDPartitioning", "1234")->text.rule, "a -> a");
  EXPECT_TRUE(r.RegisterRule("CustomSPMDPartitioning", {.rule = "b -> b"}).ok());
  EXPECT_EQ(r.Find("CustomSPMDPartitioning", "77")->text.rule, "b -> b");
  EXPECT_EQ(r.Find("CustomSPMDPartitioning", "1234")->text.rule, "a -> a");
  EXPECT_EQ(r.List().size(), 2);
}

TEST_F(RegistryTest, ABadRuleStringIsRefusedWithItsTarget) {
  TargetRegistry r;
  const absl::Status s = r.RegisterRule("my_op", {.rule = "a b, a b"});
  EXPECT_EQ(DiagnosticCode(s), "E110");
  EXPECT_THAT(std::string(s.message()), HasSubstr("my_op"));
  EXPECT_TRUE(r.List().empty());
  EXPECT_FALSE(r.RegisterBatchPartitionable("my_op", -1).ok());
  EXPECT_FALSE(r.RegisterRule("", {.rule = "a -> a"}).ok());
}

TEST_F(RegistryTest, AFactorThatOnlyOperandsHaveIsSaidWhatBecomesOfIt) {
  auto refused = [](const RuleText& text) {
    TargetRegistry r;
    const absl::Status s = r.RegisterRule("row_sum", text);
    EXPECT_EQ(r.List().empty(), !s.ok());
    return s;
  };
  const absl::Status s = refused({.rule = "r c -> r"});
  EXPECT_EQ(s.message(),
            "E112 the rule of target \"row_sum\" (program) does not say what becomes of factor c, "
            "which no result has: expected reduction or need_replication for it, found r c -> r. "
            "Fix: Declare reduction={\"c\": add} (or max, min, ..) if results are combined over "
            "its shards, or need_replication={\"c\"} if the kernel must see it whole");
  for (const char* rule : {"r c -> r, r", "r, c -> r", "r (c d) -> r d", "c -> , r", "r c -> ,",
                           "... c -> c", "...1 r, ...2 r -> ...1 r"}) {
    EXPECT_EQ(DiagnosticCode(refused({.rule = rule})), "E112") << rule;
  }
  EXPECT_THAT(std::string(refused({.rule = "... c -> c"}).message()),
              HasSubstr("Fix: Name the dimensions that ... stands for"));
  const RuleText settled[] = {{.rule = "r c -> r", .need_replication = {"c"}},
                              {.rule = "r c -> r", .permutation = {"c"}},
                              {.rule = "r c -> r", .blocked = {"c"}},
                              {.rule = "r c -> r", .reduction = {{"c", PartialOp::kMax}}},
                              {.rule = "r c -> r, c"},
                              {.rule = "r c -> "},
                              {.rule = "... d, d -> ... d, ..."}};
  for (const RuleText& text : settled) EXPECT_TRUE(refused(text).ok()) << text.rule;
  // A body combines what its rule leaves open.
  TargetRegistry r;
  EXPECT_TRUE(r.RegisterCallbacksOfRule("t", {{.text = {.rule = "r c -> r"}}}, {}).ok());
}

// Whether "k ->" has a result is the call's to say.
TEST_F(RegistryTest, AnEmptyRightSideIsJudgedWithTheCall) {
  TargetRegistry r;
  ASSERT_TRUE(r.RegisterRule("total", {.rule = "k ->"}).ok());
  const TargetRule& rule = *r.Find("total", "");
  EXPECT_TRUE(rule.Instantiate("", {F32({4})}, {}).ok());
  EXPECT_TRUE(rule.Instantiate("", {F32({4})}, {context_.MakeToken()}).ok());
  EXPECT_EQ(DiagnosticCode(rule.Instantiate("", {F32({4})}, {F32({})}).status()), "E112");
}

TEST_F(RegistryTest, BatchDimsLeaveTheRestWhole) {
  TargetRegistry r;
  ASSERT_TRUE(r.RegisterBatchPartitionable("row_solve", 2).ok());
  absl::StatusOr<ShardingRule> rule =
      r.Find("row_solve", "")
          ->Instantiate("", {F32({16, 8, 32})}, {F32({16, 8, 32}), F32({16, 8})});
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->operands[0].dims[0], rule->results[1].dims[0]);
  EXPECT_EQ(rule->factors[rule->operands[0].dims[1][0]].kind, FactorKind::kPassThrough);
  EXPECT_EQ(rule->factors[rule->operands[0].dims[2][0]].kind, FactorKind::kNeedReplication);
}

TEST_F(RegistryTest, RmsNormKeepsTheNormalizedDimensionWhole) {
  EXPECT_EQ(Builtin("rms_norm", {F32({4, 8, 16}), F32({16})}, {F32({4, 8, 16}), F32({4, 8})}),
            "b0 b1 d, d -> b0 b1 d, b0 b1 need_replication={d}");
  EXPECT_EQ(Builtin("rms_norm", {F32({8, 16}), F32({16})}, {F32({8, 16})}),
            "b0 d, d -> b0 d need_replication={d}");
}

TEST_F(RegistryTest, RmsNormBackwardSumsTheGainOverSharedRows) {
  EXPECT_EQ(Builtin("rms_norm_bwd", {F32({4, 8, 16}), F32({4, 8, 16}), F32({16}), F32({4, 8})},
                    {F32({4, 8, 16}), F32({16})}),
            "a b d, a b d, d, a b -> a b d, d reduction={a:add, b:add} need_replication={d}");
  EXPECT_EQ(
      Builtin("rms_norm_bwd", {F32({16}), F32({16}), F32({16}), F32({})}, {F32({16}), F32({16})}),
      "d, d, d, -> d, d need_replication={d}");
}

TEST_F(RegistryTest, FlashAttentionSplitsBatchAndGroupsOfHeads) {
  const Shape* q = F32({4, 8, 32, 64});
  const Shape* kv = F32({4, 8, 8, 64});
  const std::string fwd = Builtin("flash_attention_fwd", {q, kv, kv}, {q, F32({4, 32, 8})});
  EXPECT_THAT(fwd, HasSubstr("b s (g r) e, b t g e, b t g f -> b s (g r) f, b (g r) s"));
  EXPECT_THAT(fwd, HasSubstr("need_replication={s, r, e, t}"));
  EXPECT_THAT(Builtin("flash_attention_fwd", {q, kv, kv}, {q}), HasSubstr("-> b s (g r) f "));
  // As many heads in k and v as in q: r is 1.
  EXPECT_THAT(Builtin("flash_attention_fwd", {q, q, q}, {q}), HasSubstr("b s (g r) e, b t g e"));
  EXPECT_THAT(Builtin("flash_attention_bwd", {q, q, kv, kv, q, F32({4, 32, 8})}, {q, kv, kv}),
              HasSubstr("-> b s (g r) e, b t g e, b t g f"));
}

TEST_F(RegistryTest, FlashAttentionFollowsItsLayoutAttribute) {
  const Shape* q = F32({4, 32, 8, 64});
  const Shape* kv = F32({4, 8, 8, 64});
  EXPECT_THAT(
      Builtin("flash_attention_fwd", {q, kv, kv}, {q}, R"({causal = true, layout = "bhsd"})"),
      HasSubstr("b (g r) s e, b g t e, b g t f -> b (g r) s f"));
}

TEST_F(RegistryTest, FlashAttentionHeadsThatDoNotDivideAreRefused) {
  const Shape* q = F32({4, 8, 30, 64});
  const Shape* kv = F32({4, 8, 8, 64});
  EXPECT_THAT(Builtin("flash_attention_fwd", {q, kv, kv}, {q}), HasSubstr("E111"));
}

TEST_F(RegistryTest, GemmFollowsItsTransposes) {
  EXPECT_EQ(Builtin("cublas_gemm", {F32({4, 8}), F32({8, 2})}, {F32({4, 2})}),
            "m k, k n -> m n reduction={k:add} pad={k:0}");
  EXPECT_EQ(Builtin("cublas_gemm", {F32({8, 8}), F32({8, 8})}, {F32({8, 8})},
                    R"({transa = "N", transb = "T"})"),
            "m k, n k -> m n reduction={k:add} pad={k:0}");
  EXPECT_EQ(Builtin("cublas_gemm", {F32({8, 8}), F32({8, 8})}, {F32({8, 8})}, "{transa = true}"),
            "k m, k n -> m n reduction={k:add} pad={k:0}");
}

TEST_F(RegistryTest, WhatStandsInsideAStringOrADictionaryIsNoAttributeOfTheCall) {
  for (const char* config : {R"({note = "with transb = true"})", "{more = {transb = true}}"}) {
    EXPECT_EQ(Builtin("cublas_gemm", {F32({8, 8}), F32({8, 8})}, {F32({8, 8})}, config),
              "m k, k n -> m n reduction={k:add} pad={k:0}")
        << config;
  }
}

TEST_F(RegistryTest, AttributesInTheConfigOfXlaGpuAreRead) {
  EXPECT_EQ(Builtin("cublas_gemm", {F32({8, 8}), F32({8, 8})}, {F32({8, 8})},
                    R"({"operation_queue_id":"0","custom_call_backend_config":)"
                    R"({"attributes":"{transb = \"T\"}"}})"),
            "m k, n k -> m n reduction={k:add} pad={k:0}");
}

TEST_F(RegistryTest, GemmWithAnAddendKeepsTheContractionWhole) {
  EXPECT_EQ(Builtin("cublas_gemm", {F32({4, 8}), F32({8, 2}), F32({4, 2})}, {F32({4, 2})}),
            "m k, k n, m n -> m n need_replication={k}");
}

TEST_F(RegistryTest, ACallThatNoSignatureFitsNamesAllOfThem) {
  const std::string error = Builtin("rms_norm", {F32({4, 8})}, {F32({4, 8})});
  EXPECT_THAT(error, HasSubstr("E111"));
  EXPECT_THAT(error, HasSubstr("... d, d -> ... d, ..."));
  EXPECT_THAT(error, HasSubstr("(f32[4,8]) -> (f32[4,8])"));
}

}  // namespace
}  // namespace shardcall
