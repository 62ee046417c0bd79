// SPDX-License-Identifier: Apache-2.0
// What a call's backend_config is on a shard, by the formulas of its rule.
#include "shardcall/partitioner/custom_call/attribute_formulas.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// "m n" of 64 rows and 48 columns.
ShardingRule Rule() {
  ShardingRule rule;
  rule.factors = {{.size = 64, .name = "m"}, {.size = 48, .name = "n"}};
  return rule;
}

absl::StatusOr<std::string> OnShard(const AttributeFormulas& formulas, const std::string& config,
                                    std::vector<int64_t> sizes = {16, 48}) {
  return ConfigOfShard(formulas, "k", config, Rule(), sizes);
}

TEST(AttributeFormulas, ADictionaryKeepsAllButItsNumbers) {
  const auto config = OnShard(
      {{"grid_x", "m / 8"}, {"more.rows", "m"}, {"shape[1]", "m * n"}, {"all[0]", "m"}},
      "{debug = false,  grid_x = 8 : i32, ir = \"grid_x = 8 \\22{\", \"more\" = {eps = 1.0 : f32, "
      "rows = 64}, shape = array<i64: 3, 3072>, all = dense<[64, 7]> : tensor<2xi32>}");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config,
            "{debug = false,  grid_x = 2 : i32, ir = \"grid_x = 8 \\22{\", \"more\" = {eps = 1.0 : "
            "f32, rows = 16}, shape = array<i64: 3, 768>, all = dense<[16, 7]> : tensor<2xi32>}");
}

TEST(AttributeFormulas, JsonIsWrittenWithThem) {
  const auto plain = OnShard({{"grid[0]", "m / 8"}, {"kernel.n", "n"}},
                             "{\"grid\": [8, 1], \"kernel\": {\"n\": 48, \"eps\": 0.5}}");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(*plain, "{\"grid\":[2,1],\"kernel\":{\"n\":48,\"eps\":0.5}}");
  const auto gpu = OnShard({{"n", "m"}},
                           "{\"operation_queue_id\":\"0\",\"custom_call_backend_config\":"
                           "{\"attributes\":\"{n = 64 : i32}\"}}");
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  EXPECT_EQ(*gpu,
            "{\"operation_queue_id\":\"0\",\"custom_call_backend_config\":"
            "{\"attributes\":\"{n = 16 : i32}\"}}");
}

TEST(AttributeFormulas, WhatDoesNotFollowIsE125) {
  const auto text = [](const absl::StatusOr<std::string>& config) {
    EXPECT_EQ(DiagnosticCode(config.status()), "E125");
    return std::string(config.status().message());
  };
  EXPECT_THAT(text(OnShard({{"grid", "m / 8"}}, "{grid_x = 8 : i32, eps = 1.0 : f32}")),
              AllOf(HasSubstr("attribute grid of target \"k\""),
                    HasSubstr("the call does not state it: expected one of grid_x, found grid")));
  EXPECT_THAT(text(OnShard({{"grid", "m"}}, "")), HasSubstr("expected a backend_config"));
  EXPECT_THAT(text(OnShard({{"eps", "m"}}, "{eps = 1.0 : f32}")),
              HasSubstr("is no integer: expected an integer, found f32"));
  EXPECT_THAT(text(OnShard({{"grid_x", "m / 32"}}, "{grid_x = 8 : i32}")),
              HasSubstr("is not what its formula \"m / 32\" gives for the whole call: expected 2, "
                        "found 8"));
  EXPECT_THAT(text(OnShard({{"grid_x", "m / 8"}}, "{grid_x = 8 : i32}", {15, 48})),
              HasSubstr("for m = 15: expected an integer, found 15/8"));
  EXPECT_THAT(text(OnShard({{"n", "200 - m * 2"}}, "{n = 72 : i8}")),
              HasSubstr("cannot be what its formula \"200 - m * 2\" gives for a shard: expected a "
                        "value of s8, found 168"));
  EXPECT_THAT(text(OnShard({{"n", "m - 64"}}, "{n = 0 : ui8}")), HasSubstr("found -48"));
  EXPECT_EQ(DiagnosticCode(OnShard({{"n", "m"}}, "rows: 64").status()), "E131");
}

TEST(AttributeFormulas, ConfigsOfOtherSizesNeedNotAgreeWithTheCall) {
  const auto config = ConfigOfSizes({{"grid_x", "m / 8"}}, "k", "{grid_x = 99 : i32}", Rule(),
                                    std::vector<int64_t>{32, 48});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config, "{grid_x = 4 : i32}");
}

TEST(AttributeFormulas, AreCheckedWhenTheRuleIsRegistered) {
  const auto registered = [](AttributeFormulas formulas) {
    std::vector<RuleAlternative> rules(1);
    rules[0].text.rule = "rows n -> rows n";
    rules[0].attributes = std::move(formulas);
    TargetRegistry targets;
    const absl::Status status = targets.RegisterRules("k", std::move(rules));
    EXPECT_EQ(targets.Find("k", "") != nullptr, status.ok());
    return status;
  };
  EXPECT_TRUE(registered({{"grid_x", "rows / 8"}, {"grid_y", "cdiv(n, 4)"}}).ok());
  for (const auto& [formulas, part] : std::vector<std::pair<AttributeFormulas, std::string>>{
           {{{"grid_x", "row / 8"}}, "lacks: expected one of rows, n, found row. Fix: Write rows"},
           {{{"grid_x", "rows /"}}, "cannot be read at column 7"},
           {{{"g", "n"}, {"g", "n"}}, "attribute g of target \"k\" has two formulas"},
           {{{"", "n"}}, "no name"}}) {
    const absl::Status status = registered(formulas);
    EXPECT_EQ(DiagnosticCode(status), "E124");
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

TEST(AttributeFormulas, RulesWithOtherFormulasAreOtherRules) {
  const auto with = [](std::string formula) {
    std::vector<RuleAlternative> rules(1);
    rules[0].text.rule = "m -> m";
    rules[0].attributes = {{"n", std::move(formula)}};
    return rules;
  };
  TargetRegistry targets;
  EXPECT_TRUE(targets.RegisterRules("k", with("m")).ok());
  EXPECT_TRUE(targets.RegisterRules("k", with("m")).ok());
  EXPECT_EQ(DiagnosticCode(targets.RegisterRules("k", with("2 m"))), "E105");
}

}  // namespace
}  // namespace shardcall
