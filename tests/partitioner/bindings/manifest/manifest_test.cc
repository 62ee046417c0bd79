// SPDX-License-Identifier: Apache-2.0
// Manifests: what they register, what they refuse, and the dumps of
// custom_partitioning that only a manifest makes whole.
#include "shardcall/partitioner/bindings/manifest/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/bindings/c/plugin.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

constexpr char kData[] = SHARDCALL_SOURCE_DIR "/tests/data/";

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(Manifest, RegistersRulesAndBatchDims) {
  TargetRegistry targets;
  ASSERT_TRUE(LoadManifest(R"({"targets": [
      {"name": "norm", "rule": "... d, d -> ... d", "need_replication": ["d"]},
      {"name": "sum", "rule": "b k -> b", "reduction": {"k": "add"}, "pad": {"k": 0}},
      {"name": "solve", "batch_dims": 1, "backend_config": "x"}]})",
                           "m.json", &targets)
                  .ok());
  ASSERT_NE(targets.Find("norm", ""), nullptr);
  EXPECT_EQ(targets.Find("norm", "")->source, "manifest m.json");
  EXPECT_EQ(targets.Find("solve", "y"), nullptr);
  ASSERT_NE(targets.Find("solve", "x"), nullptr);
  EXPECT_EQ(targets.Find("solve", "x")->batch_dims, 1);
  EXPECT_EQ(targets.Find("sum", "any")->level, RuleLevel::kRule);
}

TEST(Manifest, APadMayBeWhatJsonHasNoNumberFor) {
  TargetRegistry targets;
  const absl::Status status = LoadManifest(R"({"targets": [
      {"name": "largest", "rule": "b k n -> b", "reduction": {"k": "max", "n": "max"},
       "pad": {"k": "-inf", "n": "nan"},
       "vjp": {"target": "largest_bwd", "arguments": ["cotangent 0", "operand 0"],
               "gradients": [0], "pad": {"b": "inf"}}}]})",
                                           "m.json", &targets);
  ASSERT_TRUE(status.ok()) << status;
  const auto& pads = targets.Find("largest", "")->text.pad;
  EXPECT_EQ(pads[0].second, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(pads[1].second));
  EXPECT_EQ(targets.Facts("largest")->vjp->pad[0].second, std::numeric_limits<double>::infinity());
}

TEST(Manifest, AVjpMayBeOfARuleForABackendConfig) {
  TargetRegistry targets;
  const absl::Status status = LoadManifest(R"({"targets": [
      {"name": "f", "rule": "i -> i", "need_replication": ["i"], "backend_config": "x",
       "vjp": {"target": "f_bwd", "arguments": ["cotangent 0"], "gradients": [0]}}]})",
                                           "m.json", &targets);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(targets.Find("f_bwd", ""), nullptr);
  EXPECT_EQ(targets.Find("f_bwd", "x")->text.need_replication, std::vector<std::string>{"i"});
}

TEST(Manifest, ATargetMayHaveSeveralRules) {
  TargetRegistry targets;
  const absl::Status status = LoadManifest(R"json({"targets": [{"name": "multi", "rules": [
      "i j -> i j",
      {"rule": "i j, j -> i j", "types": "T, T -> T"},
      {"rule": "i j, j -> i j", "types": "f32, s32 -> f32", "need_replication": ["j"],
       "when": {"mode": ["gelu", null], "axis": 1, "scale": 0.5, "fast": true}},
      {"rule": "b (k g), b k, s -> b (k g)", "need_replication": ["s"],
       "sizes": {"s": "2 b"}}]}]})json",
                                           "m.json", &targets);
  ASSERT_TRUE(status.ok()) << status;
  const TargetRule* rule = targets.Find("multi", "");
  ASSERT_NE(rule, nullptr);
  ASSERT_EQ(rule->num_given, 4u);
  EXPECT_EQ(AttributeConditionsText(rule->alternatives[2].when),
            "{mode = \"gelu\" or none, axis = 1, scale = 0.5, fast = true}");
  EXPECT_EQ(rule->alternatives[2].text.need_replication, std::vector<std::string>{"j"});
  EXPECT_EQ(targets.Facts("multi")->limits->sizes[0].second, "2 b");
}

TEST(Manifest, RulesThatOverlapAreRefusedWithAFix) {
  TargetRegistry targets;
  const absl::Status status =
      LoadManifest(R"({"targets": [{"name": "multi", "rules": ["i j -> i j", "m n -> n m"]}]})",
                   "m.json", &targets);
  EXPECT_THAT(status, Fails("E105", "\"i j -> i j\" and \"m n -> n m\""));
  EXPECT_THAT(status, Fails("E105", "m.json"));
  EXPECT_THAT(status, Fails("E105", "Fix: "));
  EXPECT_TRUE(targets.List().empty());
}

TEST(Manifest, AttributesFollowTheShardAndScratchResultsAreTheCheckersFact) {
  TargetRegistry targets;
  const absl::Status status = LoadManifest(R"json({"targets": [
      {"name": "k", "rule": "m n -> m n, m n", "scratch": [1],
       "attributes": {"grid_x": "cdiv(m, 16)", "more.n": "n", "grid_z": 1}},
      {"name": "several", "rules": ["m n -> m n", {"rule": "m -> m", "attributes": {"n": "m"}}]}
      ]})json",
                                           "m.json", &targets);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(targets.Find("k", "")->alternatives[0].attributes,
              testing::ElementsAre(testing::Pair("grid_x", "cdiv(m, 16)"),
                                   testing::Pair("more.n", "n"), testing::Pair("grid_z", "1")));
  EXPECT_THAT(targets.Facts("k")->limits->scratch, testing::ElementsAre(1));
  EXPECT_EQ(targets.Find("several", "")->alternatives[1].attributes.size(), 1u);
  for (const auto& [keys, code, part] :
       std::vector<std::tuple<const char*, const char*, const char*>>{
           {R"("attributes": {"n": "rows"})", "E124", "expected one of m, n, found rows"},
           {R"("attributes": {"n": 1.5})", "E141", "targets[0].attributes.n: expected a formula"},
           {R"("attributes": ["n"])", "E141", "an object with formulas"},
           {R"("attributes": "{n = 1}")", "E141", "a \"kernel\" that takes them, or formulas"},
           {R"("scratch": 1)", "E141", "targets[0].scratch: expected a list of results"},
           {R"("scratch": [-1])", "E141", "numbers of results"}}) {
    TargetRegistry none;
    const std::string text =
        absl::StrCat(R"({"targets": [{"name": "k", "rule": "m n -> m n", )", keys, "}]}");
    EXPECT_THAT(LoadManifest(text, "m.json", &none), Fails(code, part));
    EXPECT_TRUE(none.List().empty());
  }
  EXPECT_THAT(LoadManifest(R"({"targets": [{"name": "k", "batch_dims": 1,
                                            "attributes": {"n": "m"}}]})",
                           "m.json", &targets),
              Fails("E141", "a \"rule\" whose factors it is of"));
}

TEST(Manifest, AnEmptyListIsFine) {
  TargetRegistry targets;
  EXPECT_TRUE(LoadManifest(R"({"targets": []})", "m.json", &targets).ok());
  EXPECT_TRUE(targets.List().empty());
}

TEST(Manifest, BadTextNamesThePlace) {
  for (
      const auto& [text, code, part] :
      std::vector<std::tuple<const char*, const char*, const char*>>{
          {"", "E141", "m.json"},
          {"[", "E141", "m.json"},
          {"[]", "E141", "object"},
          {"{}", "E141", "targets"},
          {R"({"target": []})", "E141", "\"target\""},
          {R"({"targets": {}})", "E141", "list"},
          {R"({"targets": [3]})", "E141", "targets[0]"},
          {R"({"targets": [{"rule": "i -> i"}]})", "E141", "\"name\""},
          {R"({"targets": [{"name": "a"}]})", "E141", "neither"},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "batch_dims": 1}]})", "E141", "several"},
          {R"({"targets": [{"name": "a", "rules": [], "rule": "i -> i"}]})", "E141", "several"},
          {R"({"targets": [{"name": "a", "rules": []}]})", "E141", "an empty one"},
          {R"({"targets": [{"name": "a", "rules": "i -> i"}]})", "E141", "a list of rules"},
          {R"({"targets": [{"name": "a", "rules": [3]}]})", "E141", "rules[0]"},
          {R"({"targets": [{"name": "a", "rules": [{}]}]})", "E141", "a \"rule\""},
          {R"({"targets": [{"name": "a", "rules": [{"rule": "i -> i", "vjp": {}}]}]})", "E141",
           "rules[0]"},
          {R"({"targets": [{"name": "a", "rules": ["i -> i"], "pad": {"i": 0}}]})", "E141",
           "a \"rule\" whose factors"},
          {R"({"targets": [{"name": "a", "rules": ["i -> i -> i"]}]})", "E110", ""},
          {R"({"targets": [{"name": "a", "rule": ["i -> i"]}]})", "E141", "\"rules\" for a list"},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "when": 3}]})", "E141", "when"},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "when": {"m": {}}}]})", "E141",
           "when.m"},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "when": {"m": []}}]})", "E141",
           "an empty list"},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "types": 3}]})", "E141", "types"},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "types": "f32"}]})", "E110", "arrow"},
          {R"({"targets": [{"name": "a", "rules": [
               {"rule": "g h -> g h", "sizes": {"g": "2 h"}},
               {"rule": "a g h -> a g h", "sizes": {"g": "3 h"}}]}]})",
           "E141", "as in the rule before"},
          {R"({"targets": [{"name": "a", "batch_dims": -1}]})", "E141", "batch_dims"},
          {R"({"targets": [{"name": "a", "batch_dims": 1e9}]})", "E141", "batch_dims"},
          {R"({"targets": [{"name": "a", "rule": 3}]})", "E141", "rule"},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "colour": "red"}]})", "E141", "colour"},
          {R"({"targets": [{"name": "a", "rulle": "i -> i"}]})", "E141", "near \"rule\""},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "reduction": {"i": "mean"}}]})", "E141",
           "reduction"},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "pad": {"i": "0"}}]})", "E141", "pad"},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "pad": {"i": "-Infinity"}}]})", "E141",
           "a number, \"inf\", \"-inf\" or \"nan\", found \"-Infinity\""},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "pad": [0]}]})", "E141",
           "targets[0].pad"},
          {R"({"targets": [{"name": "a", "rule": "i (k g) -> i k", "sizes": {"g": 4.5},
               "need_replication": ["g"]}]})",
           "E141", "sizes.g: expected an integer, or what it follows from, as in \"4 h\""},
          {R"({"targets": [{"name": "a", "rule": "i (k g) -> i k", "need_replication": ["g"],
               "sizes": {"g": 9223372036854775808}}]})",
           "E141", "found 9223372036854775808"},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "when": {"a": 18446744073709551615}}]})",
           "E141", "integers below 2^63"},
          {R"({"targets": [{"name": "a", "rules": [
               {"rule": "i -> i", "attributes": "{n = 3}"}]}]})",
           "E141", "rules[0].attributes: expected an object with formulas"},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "ranges": {"operand 0":
               [0, 18446744073709551615]}}]})",
           "E141", "ranges"},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "backend_config": "x",
               "batching": "leading"}]})",
           "E105", "rules for one backend_config each"},
          {R"({"targets": [{"name": "a", "rule": "i -> -> i"}]})", "E110", ""},
          {R"({"targets": [{"name": "a", "kernel": 3}]})", "E141", "kernel"},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "attributes": "{}"}]})", "E141",
           "kernel"},
          {R"({"targets": [{"name": "a", "kernel": "fft", "attributes": "{x = }"}]})", "E131", ""},
          {R"({"library": "x.so", "targets": []})", "E142", "library"},
          {R"({"targets": [{"name": "a", "symbol": "f", "rule": "i -> i"}]})", "E141", "library"},
          {R"({"targets": [{"name": "a", "platform": "", "rule": "i -> i"}]})", "E141", "no name"},
          {R"({"targets": [{"name": "a", "api_version": 0, "rule": "i -> i"}]})", "E141",
           "1, 2, 3"},
          {R"({"targets": [{"name": "a", "api_version": 9, "rule": "i -> i"}]})", "E141", "9"},
          {R"({"targets": [{"name": "a", "traits": ["FAST"], "rule": "i -> i"}]})", "E141", "FAST"},
          {R"({"targets": [{"name": "a", "api_version": 2, "rule": "i -> i",
               "traits": ["COMMAND_BUFFER_COMPATIBLE"]}]})",
           "E141", "untyped"},
          {R"({"targets": [{"name": "a", "rule": "i -> i",
               "traits": ["COMMAND_BUFFER_COMPATIBLE"]}]})",
           "E141", "a \"symbol\""},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "platform": "Host"}]})", "E141",
           "a \"symbol\""},
          {R"({"targets": [{"name": "a", "rule": "i -> i", "rule": "i j -> i j"}]})", "E141",
           "\"rule\" twice"},
          {R"({"types": 3, "targets": []})", "E141", "types"},
          {R"({"types": [{"name": "T"}], "targets": []})", "E141", "type_id"}}) {
    TargetRegistry targets;
    const absl::Status status = LoadManifest(text, "m.json", &targets);
    EXPECT_THAT(status, Fails(code, part)) << text;
    EXPECT_THAT(status, Fails(code, "m.json")) << text;
    EXPECT_THAT(status, Fails(code, "Fix: ")) << text;
  }
}

TEST(Manifest, ASecondLoweringOfANameAndPlatformIsRefused) {
  TargetRegistry targets;
  LoweringRegistry lowerings;
  EXPECT_THAT(LoadManifest(R"({"targets": [], "lowerings": [{"name": "a", "target": "x"},
                               {"name": "a", "platform": "Host", "target": "y"},
                               {"name": "a", "target": "z"}]})",
                           "m.json", &targets, nullptr, &lowerings),
              Fails("E141", "lowerings[2]"));
}

TEST(Manifest, ContradictionsShowBothRules) {
  TargetRegistry targets;
  ASSERT_TRUE(
      LoadManifest(R"({"targets": [{"name": "a", "rule": "i -> i"}]})", "1.json", &targets).ok());
  EXPECT_TRUE(
      LoadManifest(R"({"targets": [{"name": "a", "rule": "i -> i"}]})", "1.json", &targets).ok());
  EXPECT_THAT(LoadManifest(R"({"targets": [{"name": "a", "batch_dims": 2}]})", "2.json", &targets),
              Fails("E105", "1.json"));
}

absl::Status Transform(const HandlerRegistry& handlers, absl::string_view config,
                       std::vector<std::complex<float>>* x) {
  const auto entry = handlers.Find("signal", "Host", config);
  if (!entry.ok()) return entry.status();
  const BufferView view{ElementType::kC64, {static_cast<int64_t>(x->size())}, x->data()};
  HandlerContext context;
  context.target = "signal";
  return (*entry)->host(context, {view}, {view});
}

TEST(Manifest, AKernelComputesTheCallsOfItsBackendConfig) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  ASSERT_TRUE(RegisterBuiltinHandlers(handlers).ok());
  const char* text = R"({"targets": [
      {"name": "signal", "backend_config": "1", "kernel": "fft"},
      {"name": "signal", "backend_config": "2", "kernel": "fft",
       "attributes": "{fft_type = \"IFFT\"}"}]})";
  ASSERT_TRUE(LoadManifest(text, "m.json", &targets, &handlers).ok());
  EXPECT_TRUE(LoadManifest(text, "m.json", &targets, &handlers).ok());
  EXPECT_THAT(targets.List(), testing::IsEmpty());
  std::vector<std::complex<float>> x = {1, 2, 3, 4};
  ASSERT_TRUE(Transform(handlers, "1", &x).ok());
  EXPECT_EQ(x[0], std::complex<float>(10));
  ASSERT_TRUE(Transform(handlers, "2", &x).ok());
  EXPECT_EQ(x[3], std::complex<float>(4));
  EXPECT_THAT(Transform(handlers, "3", &x), Fails("E140", "for backend_config \"1\""));
  EXPECT_THAT(LoadManifest(R"({"targets": [{"name": "b", "kernel": "ffts"}]})", "n.json", &targets,
                           &handlers),
              Fails("E140", "fft"));
}

TEST(Plugin, FilesThatCannotBeReadAreNamed) {
  TargetRegistry targets;
  EXPECT_THAT(LoadPlugin("no/such/file.json", &targets), Fails("E143", "no/such/file.json"));
}

class CustomPartitioning : public testing::TestWithParam<const char*> {};

TEST_P(CustomPartitioning, NeedsTheManifestThatItsDumpLost) {
  const std::string text = ReadFile(std::string(kData) + "hlo/" + GetParam() + ".gspmd.hlo");
  TargetRegistry targets;
  ASSERT_TRUE(RegisterBuiltinTargets(targets).ok());
  TextOptions options;
  options.targets = &targets;
  const absl::Status without = PartitionText(text, options).status();
  EXPECT_THAT(without, Fails("E101", "target \"CustomSPMDPartitioning\""));
  EXPECT_THAT(without, Fails("E101", "--plugin=FILE.json"));
  EXPECT_THAT(without, Fails("E101", "backend_config"));

  const absl::Status loaded =
      LoadPlugin(std::string(kData) + "plugins/custom_partitioning.json", &targets);
  ASSERT_TRUE(loaded.ok()) << loaded;
  const auto with = PartitionText(text, options);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_THAT(LocalText(**with), HasSubstr("CustomSPMDPartitioning"));
  EXPECT_TRUE((*with)->plan.fallbacks.empty());
}

INSTANTIATE_TEST_SUITE_P(Dumps, CustomPartitioning,
                         testing::Values("llama_block_fwd_ruled_d4m2", "fft_custom_partitioning_d8",
                                         "fft_custom_partitioning_last_d8"));

}  // namespace
}  // namespace shardcall
