// SPDX-License-Identifier: Apache-2.0
// Kernels that state their grid, or a size, in attributes: on shards they get those of the shard,
// or the program is refused.
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr absl::string_view kKnownTargets[] = {
#define SHARDCALL_KNOWN_TARGET(name, text, traits) text,
#include "shardcall/partitioner/ir/known_targets.inc"
#undef SHARDCALL_KNOWN_TARGET
};

// y = 2 x on grid_x blocks of 4 rows, and nothing on others. A block beyond the rows is an error,
// where a kernel would leave its buffers.
absl::Status Blocks(const HandlerContext& context, absl::Span<const BufferView> in,
                    absl::Span<const BufferView> out) {
  const auto grid = context.attribute_map().GetInt("grid_x", 0);
  if (!grid.ok()) return grid.status();
  const int64_t rows = in[0].dims[0], columns = in[0].dims[1], computed = 4 * *grid;
  if (computed > rows) {
    return absl::OutOfRangeError(absl::StrCat("a grid for ", computed, " rows of ", rows));
  }
  std::memset(out[0].data, 0, static_cast<size_t>(out[0].byte_size()));
  for (int64_t k = 0; k < computed * columns; ++k) {
    static_cast<float*>(out[0].data)[k] = 2 * static_cast<const float*>(in[0].data)[k];
  }
  return absl::OkStatus();
}

class Attributes : public testing::Test {
 protected:
  void Rule(const std::string& target, const std::string& rule,
            std::vector<std::pair<std::string, std::string>> attributes) {
    std::vector<RuleAlternative> rules(1);
    rules[0].text.rule = rule;
    rules[0].attributes = std::move(attributes);
    const absl::Status status = targets_.RegisterRules(target, std::move(rules));
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(handlers_.Register({.target = target, .source = "test", .host = Blocks}).ok());
    options_.targets = &targets_;
    options_.handlers = &handlers_;
  }
  static std::string Call(const std::string& target, const std::string& sharding,
                          const std::string& config, const std::string& more = "") {
    return absl::StrCat(
        "HloModule m, num_partitions=4\n\nENTRY main {\n  x = f32[32,6] parameter(0), sharding={",
        sharding, "}\n  ROOT y = f32[32,6] custom-call(x), custom_call_target=\"", target,
        "\", api_version=API_VERSION_TYPED_FFI, sharding={", sharding, "}", more,
        ", backend_config=", config, "\n}\n");
  }
  std::string LocalTextOf(const std::string& text) {
    const auto program = PartitionText(text, options_);
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() ? LocalText(**program) : "";
  }

  TargetRegistry targets_;
  HandlerRegistry handlers_;
  TextOptions options_;
};

constexpr char kTriton[] = "__gpu$xla.gpu.triton";
constexpr char kConfig[] = "{grid_x = 8 : i32, name = \"two = 2 : i32\"}";

TEST_F(Attributes, FollowTheShard) {
  for (const char* target : {kTriton, "blocks"}) {
    Rule(target, "m n -> m n", {{"grid_x", "m / 4"}});
    for (const auto& [sharding, grid] :
         {std::make_pair("devices=[4,1]<=[4]", 2), std::make_pair("devices=[2,2]<=[4]", 4),
          std::make_pair("devices=[1,4]<=[4]", 8)}) {
      const std::string text = Call(target, sharding, kConfig);
      EXPECT_EQ(WhyNotEqual(text, options_), "");
      EXPECT_THAT(LocalTextOf(text),
                  HasSubstr(absl::StrCat("{grid_x = ", grid, " : i32, name = \"two = 2 : i32\"}")));
    }
  }
}

TEST_F(Attributes, ShardsThatAreNoWholeBlocksAreE125OrACeiling) {
  // 32 rows over 3 devices: 11 on each.
  const std::string uneven =
      "HloModule m, num_partitions=3\n\nENTRY main {\n  x = f32[32,6] parameter(0), "
      "sharding={devices=[3,1]<=[3]}\n  ROOT y = f32[32,6] custom-call(x), "
      "custom_call_target=\"blocks\", api_version=API_VERSION_TYPED_FFI, "
      "sharding={devices=[3,1]<=[3]}, backend_config={grid_x = 8 : i32}\n}\n";
  Rule("blocks", "m n -> m n", {{"grid_x", "m / 4"}});
  EXPECT_THAT(PartitionText(uneven, options_), Fails("E125", "m = 11: expected an integer"));
  TargetRegistry other;
  std::vector<RuleAlternative> rules(1);
  rules[0].text.rule = "m n -> m n";
  rules[0].attributes = {{"grid_x", "cdiv(m, 4)"}};
  ASSERT_TRUE(other.RegisterRules("blocks", std::move(rules)).ok());
  options_.targets = &other;
  EXPECT_THAT(LocalTextOf(uneven), HasSubstr("backend_config={grid_x = 3 : i32}"));
}

TEST_F(Attributes, AKernelWithItsGridIsRefusedWhereItsRuleSaysNothingOfIt) {
  Rule(kTriton, "m n -> m n", {});
  EXPECT_THAT(PartitionText(Call(kTriton, "devices=[4,1]<=[4]", kConfig), options_),
              Fails("E126", "target \"__gpu$xla.gpu.triton\" (%y) states the grid"));
  std::vector<std::string> refused;
  for (const absl::string_view text : kKnownTargets) {
    if (!HasTrait(FindKnownTarget(text), kStatesGrid)) continue;
    const std::string target(text);
    if (target != kTriton) Rule(target, "m n -> m n", {});
    EXPECT_THAT(PartitionText(Call(target, "devices=[4,1]<=[4]", kConfig), options_),
                Fails("E126", absl::StrCat("target \"", target, "\"")));
    refused.push_back(target);
  }
  EXPECT_THAT(refused, UnorderedElementsAre("__gpu$xla.gpu.triton", "triton_kernel_call",
                                            "mosaic_gpu_v2", "mosaic_gpu", "tpu_custom_call"));
  // Whole, it runs as it is.
  EXPECT_EQ(WhyNotEqual(Call(kTriton, "replicated", kConfig), options_), "");
}

TEST_F(Attributes, TheFormulasOfTheRegistryTakeThePlaceOfTheCallsOwnRule) {
  const std::string own =
      ", frontend_attributes={xla.sdy.sharding_rule=\"#sdy.op_sharding_rule<([i, j])->([i, j]) "
      "{i=32, j=6}, custom>\"}";
  const std::string text = Call(kTriton, "devices=[4,1]<=[4]", kConfig, own);
  EXPECT_THAT(PartitionText(text, options_), Fails("E126", "shard_map"));
  Rule(kTriton, "m n -> m n", {{"grid_x", "m / 4"}});
  EXPECT_EQ(WhyNotEqual(text, options_), "");
  EXPECT_THAT(LocalTextOf(text), HasSubstr("grid_x = 2 : i32"));
}

TEST_F(Attributes, AFormulaThatDoesNotGiveTheCallsOwnValueIsE125) {
  Rule("blocks", "m n -> m n", {{"grid_x", "m / 8"}});
  EXPECT_THAT(PartitionText(Call("blocks", "devices=[4,1]<=[4]", kConfig), options_),
              Fails("E125", "for the whole call: expected 4, found 8"));
}

TEST_F(Attributes, AGlobalSizeInJsonOfAnUntypedCallFollowsToo) {
  Rule("rows", "m n -> m n", {{"n", "m"}});
  std::string text = Call("rows", "devices=[4,1]<=[4]", "\"{\\\"n\\\": 32, \\\"k\\\": [1, 2]}\"");
  text.replace(text.find("API_VERSION_TYPED_FFI"), 21, "API_VERSION_STATUS_RETURNING_UNIFIED");
  EXPECT_THAT(LocalTextOf(text), HasSubstr("{\"n\":8,\"k\":[1,2]}"));
}

}  // namespace
}  // namespace shardcall
