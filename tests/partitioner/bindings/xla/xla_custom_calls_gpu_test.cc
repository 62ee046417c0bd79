// SPDX-License-Identifier: Apache-2.0
// Counterparts of the cases of XLA's own custom-call tests for the GPU that need none,
// with handlers written against XLA's headers (plugins/xla_suite.cc). Which case is
// whose stands in tests/status/xla_custom_calls.json.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/partitioner/bindings/xla/xla_suite_util.h"

namespace shardcall {
namespace {

using testing::ElementsAre;

TEST(XlaGpuSuite, ASuccessThatIsSet) {
  EXPECT_TRUE(Results("ROOT r = f32[] custom-call(), custom_call_target=\"untyped.succeed\", "
                      "api_version=API_VERSION_STATUS_RETURNING_UNIFIED")
                  .ok());
}

TEST(XlaGpuSuite, ATargetWithoutAHandlerIsNamedBeforeAnythingRuns) {
  EXPECT_THAT(Results("ROOT r = f32[] custom-call(), custom_call_target=\"NoCallback\", "
                      "api_version=API_VERSION_STATUS_RETURNING"),
              Fails("E140", "NoCallback"));
}

TEST(XlaGpuSuite, AttributesInAGpuBackendConfig) {
  const std::string config =
      R"({"operation_queue_id":"0","custom_call_backend_config":{"attributes":"{value = 42 : i32}"}})";
  EXPECT_THAT(Results("ROOT r = f32[] custom-call(), " + Typed("fail", config)),
              Fails("E317", "Failed with 42"));
  EXPECT_THAT(Results("ROOT r = f32[] custom-call(), " +
                      Typed("fail", R"({"custom_call_backend_config":{"attributes":3}})")),
              Fails("E131", "custom_call_backend_config"));
}

TEST(XlaGpuSuite, APointerToTheUsersTextAndBinaryText) {
  std::string text("abc\0def", 7);
  const auto r =
      Results("ROOT r = f32[] custom-call(), " +
              Typed("fail_with_text",
                    absl::StrCat("{text = ", reinterpret_cast<uintptr_t>(&text), " : i64}")));
  EXPECT_THAT(r, Fails("E317", "failed: abc"));
}

TEST(XlaGpuSuite, TokensAmongOperandsAndResults) {
  const std::string a = "a = f32[128] broadcast(c), dimensions={}\n";
  const std::string start = "c = f32[] constant(1)\n" + a + "t = token[] after-all()\n";
  for (const auto& [operands, pattern] : std::vector<std::pair<std::string, std::string>>{
           {"x = (f32[128], token[]) tuple(a, t)\nROOT r = (f32[8], f32[8], token[], f32[8]) "
            "custom-call(x, x)",
            "ATATAATA"},
           {"x = (f32[128]) tuple(a)\nROOT r = token[] custom-call(x)", "AT"},
           {"y = (token[]) tuple(t)\nx = ((token[])) tuple(y)\nROOT r = f32[8] custom-call(x)",
            "TA"},
           {"ROOT r = (token[], f32[8]) custom-call(a, a)", "AATA"},
           {"z = (token[], f32[128]) tuple(t, a)\ny = (token[], f32[128], (token[], f32[128])) "
            "tuple(t, a, z)\nROOT r = (f32[8], f32[8]) custom-call(t, a, y)",
            "TATATAAA"}}) {
    const auto r =
        Results(start + operands + ", " + Typed("tokens", "{pattern = \"" + pattern + "\"}"));
    EXPECT_TRUE(r.ok()) << pattern << ": " << r.status();
  }
}

constexpr char kApplied[] = R"(
square {
  p = f32[4,2] parameter(0)
  ROOT m = f32[4,2] multiply(p, p)
}
ENTRY e {
  x = f32[4,2] parameter(0)
  ROOT r = f32[4,2] custom-call(x), %s, called_computations={square}%s
}
)";
std::string Applied(const std::string& more = "") {
  std::string text = kApplied;
  text.replace(text.find("%s"), 2, Typed("apply"));
  text.replace(text.find("%s"), 2, more);
  return text;
}

TEST(XlaGpuSuite, AHandlerRunsTheComputationOfItsCall) {
  EXPECT_THAT(Floats(Results(Applied(), {F32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})})),
              ElementsAre(1, 4, 9, 16, 25, 36, 49, 64));
}

TEST(XlaGpuSuite, AHandlerRunsTheComputationOfACallWithLayouts) {
  EXPECT_THAT(Floats(Results(Applied(", operand_layout_constraints={f32[4,2]{1,0}}"),
                             {F32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})})),
              ElementsAre(1, 4, 9, 16, 25, 36, 49, 64));
}

TEST(XlaGpuSuite, AComputationOfOtherShapesIsAnError) {
  std::string text = Applied();
  text.replace(text.find("x = f32[4,2]"), 12, "x = f32[2,2]");
  text.replace(text.find("ROOT r = f32[4,2]"), 17, "ROOT r = f32[2,2]");
  EXPECT_THAT(Results(text, {F32({2, 2}, {1, 2, 3, 4})}),
              Fails("E133", "expected f32[4,2], found f32[2,2]"));
}

TEST(XlaGpuSuite, StatesOfAllStagesMeetInExecute) {
  EXPECT_THAT(Floats(Results("ROOT r = f32[] custom-call(), " + Typed("add_values"))),
              ElementsAre(45));
}

TEST(XlaGpuSuite, WorkThatOneCallStartsAndAnotherEnds) {
  EXPECT_THAT(
      Floats(Results("p = f32[] parameter(0)\nc = f32[] copy(p)\ns = f32[] custom-call(c), " +
                         Typed("start_work", "{channel = 1 : i32}") +
                         ", output_to_operand_aliasing={{}: (0, {})}\n"
                         "ROOT r = f32[] custom-call(s), " +
                         Typed("end_work", "{channel = 1 : i32}"),
                     {F32({}, {42})})),
      ElementsAre(42));
}

TEST(XlaGpuSuite, CallsThatRunAsynchronously) {
  EXPECT_THAT(Floats(Results("one {\n p = f32[] parameter(0)\n ROOT c = f32[] custom-call(p), " +
                                 Typed("add_two") +
                                 "\n}\nENTRY e {\n p = f32[] parameter(0)\n"
                                 " s = ((f32[]), f32[]) async-start(p), calls=one\n"
                                 " t = ((f32[]), f32[]) async-start(p), calls=one\n"
                                 " d = f32[] async-done(s)\n f = f32[] async-done(t)\n"
                                 " ROOT r = f32[] add(d, f)\n}\n",
                             {F32({}, {40})})),
              ElementsAre(84));
}

TEST(XlaGpuSuite, AManifestListsTargetsForCommandBuffers) {
  const auto listed = Suite().handlers.Find("listed", "Host");
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_THAT((*listed)->traits, ElementsAre("COMMAND_BUFFER_COMPATIBLE"));
  EXPECT_THAT((*Suite().handlers.Find("add_two", "Host"))->traits, testing::IsEmpty());
}

// The device extension over several devices.

constexpr char kPlaces[] =
    R"(HloModule m, num_partitions=6, frontend_attributes={xla.sdy.meshes="{mesh = #sdy.mesh<[\"data\"=3, \"model\"=2]>}"}
ENTRY e {
  x = f32[6,4] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"data\"}, {\"model\"}]>"}
  l = f32[2,2] custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"data\"}, {\"model\"}]>]>", xla.sdy.manual_axes="#sdy<manual_axes{\"data\", \"model\"}>"}
  s = f32[2,2] custom-call(l), %s
  ROOT g = f32[6,4] custom-call(s), custom_call_target="xla.sdy.LocalToGlobalShape", frontend_attributes={xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"data\"}, {\"model\"}]>]>", xla.sdy.manual_axes="#sdy<manual_axes{\"data\", \"model\"}>"}
}
)";
std::string Placed(const std::string& call) {
  std::string text = kPlaces;
  text.replace(text.find("%s"), 2, call);
  return text;
}
TextOptions WithSuite() {
  TextOptions options;
  options.targets = &Suite().targets;
  options.handlers = &Suite().handlers;
  return options;
}

TEST(FfiDevice, AHandlerReducesOverAnAxisOfTheMesh) {
  for (const char* axis : {"data", "model"}) {
    EXPECT_EQ(WhyNotEqual(Placed(Typed("sum_over", absl::StrCat("{axis = \"", axis, "\"}"))),
                          WithSuite()),
              "")
        << axis;
  }
  // And it is the sum over that axis: columns 0, 1 with columns 2, 3.
  const auto program = PartitionText(Placed(Typed("sum_over", "{axis = \"model\"}")), WithSuite());
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<float> x(24);
  for (int i = 0; i < 24; ++i) x[i] = static_cast<float>(i);
  RunOptions options;
  options.handlers = &Suite().handlers;
  const std::vector<float> y =
      Floats(RunPartitioned(**program, {F32({6, 4}, x)}, options, nullptr));
  ASSERT_EQ(y.size(), 24u);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(y[i], x[i / 4 * 4 + i % 2] + x[i / 4 * 4 + i % 2 + 2]);
}

TEST(FfiDevice, AnAxisThatIsNotThereIsTheHandlersError) {
  const auto program = PartitionText(Placed(Typed("sum_over", "{axis = \"expert\"}")), WithSuite());
  ASSERT_TRUE(program.ok()) << program.status();
  RunOptions options;
  options.handlers = &Suite().handlers;
  EXPECT_THAT(RunPartitioned(**program, {F32({6, 4}, std::vector<float>(24))}, options, nullptr),
              Fails("E317", "no axis expert"));
}

TEST(FfiDevice, AHandlerKnowsItsPlaceInTheMesh) {
  std::string text = Placed("s");
  text.replace(text.find("custom-call(l), s"), 17, "custom-call(), " + Typed("place"));
  const auto program = PartitionText(text, WithSuite());
  ASSERT_TRUE(program.ok()) << program.status();
  RunOptions options;
  options.handlers = &Suite().handlers;
  const std::vector<float> y =
      Floats(RunPartitioned(**program, {F32({6, 4}, std::vector<float>(24))}, options, nullptr));
  ASSERT_EQ(y.size(), 24u);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(y[i], 100 * (i / 8) + 10 * (i % 4 / 2) + 1) << i;
}

}  // namespace
}  // namespace shardcall
