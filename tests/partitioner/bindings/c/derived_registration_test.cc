// SPDX-License-Identifier: Apache-2.0
// VJPs, batching rules and lowerings that come from C and from manifests.
#include <fstream>
#include <string>
#include <vector>

#include "shardcall/partitioner/api/derived_calls.h"
#include "shardcall/partitioner/api/lower_calls.h"
#include "shardcall/partitioner/api/targets.h"
#include "shardcall/partitioner/bindings/c/plugin.h"
#include "shardcall/partitioner/bindings/c/shardcall_c.h"
#include "shardcall/partitioner/bindings/manifest/manifest.h"
#include "shardcall/partitioner/check/check_vjp.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Plugin(const char* name) {
  return std::string(SHARDCALL_PLUGIN_DIR "/lib") + name + ".so";
}

struct Registries {
  TargetRegistry targets;
  HandlerRegistry handlers;
  LoweringRegistry lowerings;
  absl::Status Load(const std::string& path) {
    return LoadPlugin(path, &targets, &handlers, &lowerings);
  }
  absl::Status Manifest(const std::string& json, const std::string& file = "m.json") {
    return LoadManifest(json, file, &targets, &handlers, &lowerings);
  }
  RuleCheck Vjp(const std::string& target) {
    const TrialOptions options = {.targets = &targets, .handlers = &handlers};
    absl::StatusOr<std::vector<CheckedCall>> calls = CallsOfTarget(target, targets, handlers);
    EXPECT_TRUE(calls.ok()) << calls.status();
    absl::StatusOr<RuleCheck> check = CheckVjp(*calls, 0, options);
    EXPECT_TRUE(check.ok()) << check.status();
    return check.ok() ? *check : RuleCheck();
  }
};

constexpr char kMarked[] = R"(HloModule m, num_partitions=4
body { x = bf16[8,6] parameter(0) w = bf16[6] parameter(1) ROOT y = bf16[8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
ENTRY e { x = bf16[8,6] parameter(0), sharding={devices=[2,2]<=[4]}
  w = bf16[6] parameter(1)
  ROOT c = bf16[8] call(x, w), to_apply=body, is_composite=true, frontend_attributes={composite.attributes={mode = "sum"},composite.name="my.weigh",composite.version="1"}
})";

std::string Lowered(const std::string& text, const LoweringRegistry& lowerings) {
  absl::StatusOr<Module> module = ParseText(text);
  EXPECT_TRUE(module.ok()) << module.status();
  module = LowerCalls(*std::move(module), lowerings, "Host");
  return module.ok() ? PrintModule(*module) : std::string(module.status().message());
}

// What a plugin and a manifest that say the same must give.
void ExpectAll(Registries& r) {
  const TargetFacts* facts = r.targets.Facts("weigh");
  ASSERT_NE(facts, nullptr);
  ASSERT_TRUE(facts->vjp.has_value() && facts->batching.has_value());
  // The VJP's target has the transposed rule.
  ASSERT_NE(r.targets.Find("weigh_bwd", ""), nullptr);
  EXPECT_EQ(r.targets.Find("weigh_bwd", "")->source, "VJP of weigh");
  const RuleCheck check = r.Vjp("weigh");
  EXPECT_EQ(check.verdict, RuleVerdict::kHolds) << RuleCheckJson(check);
  EXPECT_GT(check.trials, 10);
  const std::string table = DescribeTargets(r.targets, r.handlers, &r.lowerings);
  EXPECT_THAT(table, AllOf(HasSubstr("vjp,batching"), HasSubstr("lowering of"),
                           testing::ContainsRegex("my.weigh +Host")));
  const std::string lowered = Lowered(kMarked, r.lowerings);
  EXPECT_THAT(lowered,
              AllOf(HasSubstr("custom_call_target=\"weigh\""), HasSubstr("f32[8]{0} custom-call("),
                    HasSubstr("bf16[8]{0} convert(")));
  TextOptions options;
  options.targets = &r.targets;
  options.handlers = &r.handlers;
  EXPECT_EQ(WhyNotEqual(lowered, options), "");
}

TEST(DerivedRegistration, FromAPluginInC) {
  Registries r;
  const absl::Status status = r.Load(Plugin("derived_plugin"));
  ASSERT_TRUE(status.ok()) << status;
  ExpectAll(r);
  EXPECT_TRUE(r.Load(Plugin("derived_plugin")).ok());  // equal ones pass
  // A matrix for each of a batch: a rule of its own, by the batching rule.
  constexpr char kBatched[] = R"(HloModule m, num_partitions=4
ENTRY e { x = f32[3,8,6] parameter(0), sharding={devices=[1,2,2]<=[4]}
  w = f32[3,6] parameter(1)
  ROOT y = f32[3,8] custom-call(x, w), custom_call_target="weigh", api_version=API_VERSION_TYPED_FFI
})";
  TextOptions options;
  options.targets = &r.targets;
  options.handlers = &r.handlers;
  EXPECT_EQ(WhyNotEqual(kBatched, options), "");
  EXPECT_THAT(LocalText(**PartitionText(kBatched, options)),
              HasSubstr("f32[3,4]{1,0} custom-call("));
}

TEST(DerivedRegistration, AShapeFunctionInCGivesAndChecksShapes) {
  Registries r;
  ASSERT_TRUE(r.Load(Plugin("derived_plugin")).ok());
  EXPECT_THAT(DescribeTargets(r.targets, r.handlers, nullptr), HasSubstr("shapes,vjp,batching"));
  Context context;
  const int64_t dims[] = {3, 8, 6}, row[] = {6};
  const Shape* x = context.MakeArray(ElementType::kF32, dims);
  const Shape* w = context.MakeArray(ElementType::kF32, row);
  const auto infer = [&](const char* config, std::vector<const Shape*> operands) {
    const absl::StatusOr<const Shape*> shape =
        r.targets.InferShape({&context, "weigh", config, operands});
    return shape.ok() ? (*shape)->ToString(false) : std::string(shape.status().message());
  };
  EXPECT_EQ(infer("{}", {x, w}), "f32[3,8]");
  EXPECT_THAT(infer("{}", {w, w}),
              AllOf(HasSubstr("E121"), HasSubstr("matrices and rows of f32"), HasSubstr("Fix: ")));
  EXPECT_THAT(infer("{wrong_rank = -1 : i64}", {x, w}),
              AllOf(HasSubstr("E121"), HasSubstr("result 0 can be no shape")));
  // Of several signatures the one that fits.
  const auto turned = [&](std::vector<const Shape*> operands) {
    const auto shape = r.targets.InferShape({&context, "turn", "", operands});
    return shape.ok() ? (*shape)->ToString(false) : std::string(shape.status().message());
  };
  const int64_t matrix[] = {3, 8};
  EXPECT_EQ(turned({context.MakeArray(ElementType::kS32, row)}), "f32[6]");
  EXPECT_EQ(turned({context.MakeArray(ElementType::kS32, matrix)}), "s32[8,3]");
  EXPECT_THAT(turned({x}), HasSubstr("E111 no rule of target \"turn\" fits this call"));
  const Shape* declared = context.MakeArray(ElementType::kF32, {8, 3});
  EXPECT_THAT(r.targets.CheckShape({&context, "weigh", "{}", {{x, w}}}, declared),
              Fails("E023", "f32[3,8]"));
}

TEST(DerivedRegistration, AWrongVjpOfAPluginIsFound) {
  Registries r;
  ASSERT_TRUE(r.Load(Plugin("wrong_vjp_plugin")).ok());
  const RuleCheck check = r.Vjp("weigh");
  EXPECT_EQ(check.verdict, RuleVerdict::kIncorrect);
  ASSERT_FALSE(check.findings.empty());
  EXPECT_THAT(check.findings[0].factor, HasSubstr("operand 1"));
}

TEST(DerivedRegistration, ALoweringInCSkipsOrFails) {
  Registries r;
  ASSERT_TRUE(r.Load(Plugin("derived_plugin")).ok());
  std::string text = kMarked;
  text.replace(text.find("\"sum\""), 5, "\"fail\"");
  EXPECT_THAT(Lowered(text, r.lowerings), AllOf(HasSubstr("E121"), HasSubstr("mode fail fails")));
  constexpr char kVector[] = R"(HloModule m
body { x = f32[6] parameter(0) w = f32[6] parameter(1) ROOT y = f32[6] add(x, w) }
ENTRY e { x = f32[6] parameter(0) w = f32[6] parameter(1)
  ROOT c = f32[6] call(x, w), to_apply=body, is_composite=true, frontend_attributes={composite.name="my.weigh"}
})";
  EXPECT_THAT(Lowered(kVector, r.lowerings), Not(HasSubstr("custom-call")));
  TargetRegistry targets;
  HandlerRegistry handlers;
  EXPECT_THAT(LoadPlugin(Plugin("derived_plugin"), &targets, &handlers),
              Fails("E146", "LoweringRegistry"));
}

constexpr char kManifest[] = R"({
  "targets": [
    {"name": "weigh", "rule": "b k, k -> b", "reduction": {"k": "add"}, "pad": {"k": 0},
     "vjp": {"target": "weigh_bwd", "arguments": ["cotangent 0", "operand 0", "operand 1"],
             "gradients": [0, 1]},
     "batching": "leading"}],
  "lowerings": [
    {"name": "my.weigh", "platform": "cpu", "target": "weigh", "backend_config": "{}",
     "operand_types": ["f32", "f32"], "result_types": ["f32"]}]})";

TEST(DerivedRegistration, FromAManifest) {
  Registries plugin, r;
  ASSERT_TRUE(plugin.Load(Plugin("derived_plugin")).ok());
  for (const char* target : {"weigh", "weigh_bwd"}) {
    ASSERT_TRUE(r.handlers.Register(**plugin.handlers.Find(target, "Host")).ok());
  }
  const absl::Status status = r.Manifest(kManifest);
  ASSERT_TRUE(status.ok()) << status;
  ExpectAll(r);
  EXPECT_TRUE(r.Manifest(kManifest).ok());
}

TEST(DerivedRegistration, AVjpThatIsHloInAFile) {
  const std::string folder = testing::TempDir();
  std::ofstream(folder + "/twice_bwd.hlo") << R"(HloModule b
ENTRY e { dy = f32[4] parameter(0) ROOT dx = f32[4] add(dy, dy) })";
  Registries r;
  const absl::Status status = r.Manifest(R"({"targets": [
      {"name": "twice", "rule": "i -> i",
       "vjp": {"computation": "twice_bwd.hlo", "arguments": ["cotangent 0"], "gradients": [0]},
       "batching": "loop"}]})",
                                         folder + "/m.json");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(r.targets.Facts("twice")->vjp->computation, HasSubstr("add(dy, dy)"));
  EXPECT_EQ(r.targets.Facts("twice")->batching->kind, BatchingSpec::Kind::kLoop);
}

TEST(DerivedRegistration, BadManifestsNameThePlace) {
  const auto entry = [](const std::string& more) {
    return R"({"targets": [{"name": "a", "rule": "i -> i", )" + more + "}]}";
  };
  for (const auto& [text, code, part] :
       std::vector<std::tuple<std::string, const char*, const char*>>{
           {entry(R"("vjp": 3)"), "E141", "targets[0].vjp"},
           {entry(R"("vjp": {"arguments": ["operand 0"], "gradients": [0]})"), "E141", "neither"},
           {entry(R"("vjp": {"target": "b", "computation": "c", "arguments": ["operand 0"],
                     "gradients": [0]})"),
            "E141", "both"},
           {entry(R"("vjp": {"target": "b", "arguments": ["input 0"], "gradients": [0]})"), "E141",
            "input 0"},
           {entry(R"("vjp": {"target": "b", "arguments": ["operand -1"], "gradients": [0]})"),
            "E141", "operand -1"},
           {entry(R"("vjp": {"target": "b", "arguments": ["operand 0"], "gradients": [-1]})"),
            "E141", "-1"},
           {entry(R"("vjp": {"target": "b", "arguments": ["operand 7"], "gradients": [0]})"),
            "E116", "7"},
           {entry(R"("vjp": {"computation": "none.hlo", "arguments": ["operand 0"],
                     "gradients": [0]})"),
            "E143", "none.hlo"},
           {entry(R"("batching": "sideways")"), "E141", "sideways"},
           {entry(R"("batching": {"target": ""})"), "E141", "leading"},
           {R"({"targets": [{"name": "a", "symbol": "s", "vjp": {}}]})", "E141", "library"},
           {R"({"targets": [], "lowerings": 3})", "E141", "lowerings"},
           {R"({"targets": [], "lowerings": [{"name": "a"}]})", "E141", "no target"},
           {R"({"targets": [], "lowerings": [{"name": "a", "target": "b", "api_version": 9}]})",
            "E141", "9"},
           {R"({"targets": [], "lowerings": [{"name": "a", "target": "b",
               "operand_types": ["f33"]}]})",
            "E141", "f33"}}) {
    Registries r;
    EXPECT_THAT(r.Manifest(text), Fails(code, part)) << text;
  }
  TargetRegistry targets;
  EXPECT_THAT(LoadManifest(R"({"targets": [], "lowerings": [{}]})", "m.json", &targets),
              Fails("E141", "LoweringRegistry"));
}

TEST(DerivedRegistration, AProgramInCAsksTheRegistrysLowerings) {
  Shardcall_Registry* registry = nullptr;
  ASSERT_EQ(Shardcall_Registry_Create(&registry), nullptr);
  ASSERT_EQ(Shardcall_LoadPlugin(registry, Plugin("derived_plugin").c_str()), nullptr);
  Shardcall_Module* module = nullptr;
  ASSERT_EQ(Shardcall_Module_Read(kMarked, sizeof(kMarked) - 1, "m.hlo", &module), nullptr);
  Shardcall_Options options = SHARDCALL_INIT(Shardcall_Options);
  options.registry = registry;
  Shardcall_Program* program = nullptr;
  ASSERT_EQ(Shardcall_PartitionModule(module, &options, &program), nullptr);
  Shardcall_Text* text = nullptr;
  ASSERT_EQ(Shardcall_Program_Print(program, &text), nullptr);
  EXPECT_THAT(Shardcall_Text_Data(text), HasSubstr("custom_call_target=\"weigh\""));
  Shardcall_Text_Destroy(text);
  ASSERT_EQ(Shardcall_DescribeTargets(registry, &text), nullptr);
  EXPECT_THAT(Shardcall_Text_Data(text), AllOf(HasSubstr("vjp,batching"), HasSubstr("my.weigh")));
  Shardcall_Text_Destroy(text);
  Shardcall_Program_Destroy(program);
  Shardcall_Module_Destroy(module);
  Shardcall_Registry_Destroy(registry);
}

TEST(DerivedRegistration, BadStructsInCAreErrors) {
  Shardcall_Registry* registry = nullptr;
  ASSERT_EQ(Shardcall_Registry_Create(&registry), nullptr);
  const auto code = [](Shardcall_Error* error) {
    const std::string text = Shardcall_Error_Code(error);
    Shardcall_Error_Destroy(error);
    return text;
  };
  Shardcall_Vjp vjp = SHARDCALL_INIT(Shardcall_Vjp);
  vjp.target = "b";
  EXPECT_EQ(code(Shardcall_RegisterVjp(registry, "custom_relu", &vjp)), "E148");
  const Shardcall_VjpArgument arguments[] = {{7, 0}};
  const int32_t gradients[] = {0};
  vjp.arguments = arguments;
  vjp.gradients = gradients;
  vjp.num_arguments = vjp.num_gradients = 1;
  EXPECT_EQ(code(Shardcall_RegisterVjp(registry, "custom_relu", &vjp)), "E148");
  const Shardcall_VjpArgument good[] = {{SHARDCALL_COTANGENT, 0}};
  vjp.arguments = good;
  EXPECT_EQ(code(Shardcall_RegisterVjp(registry, "no_rule", &vjp)), "E105");
  EXPECT_EQ(code(Shardcall_RegisterVjp(registry, nullptr, &vjp)), "E148");
  EXPECT_EQ(code(Shardcall_RegisterVjp(registry, "custom_relu", nullptr)), "E148");
  EXPECT_EQ(code(Shardcall_RegisterVjp(registry, "fft", &vjp)), "");
  Shardcall_Batching batching = SHARDCALL_INIT(Shardcall_Batching);
  batching.kind = 9;
  EXPECT_EQ(code(Shardcall_RegisterBatching(registry, "custom_relu", &batching)), "E148");
  batching.kind = SHARDCALL_BATCH_LOOP;
  EXPECT_EQ(code(Shardcall_RegisterBatching(registry, "custom_relu", &batching)), "");
  Shardcall_CallLimits limits = SHARDCALL_INIT(Shardcall_CallLimits);
  limits.num_sizes = 1;
  EXPECT_EQ(code(Shardcall_RegisterCallLimits(registry, "t", &limits)), "E148");
  Shardcall_RelatedSize size = {"g", nullptr};
  limits.sizes = &size;
  EXPECT_EQ(code(Shardcall_RegisterCallLimits(registry, "t", &limits)), "E105");
  size.size = "4 h";
  limits.num_ranges = -1;
  EXPECT_EQ(code(Shardcall_RegisterCallLimits(registry, "t", &limits)), "E148");
  limits.num_ranges = 0;
  EXPECT_EQ(code(Shardcall_RegisterCallLimits(registry, nullptr, &limits)), "E148");
  EXPECT_EQ(code(Shardcall_RegisterCallLimits(registry, "t", nullptr)), "E148");
  EXPECT_EQ(code(Shardcall_RegisterCallLimits(registry, "t", &limits)), "");
  size.size = "5 h";
  EXPECT_EQ(code(Shardcall_RegisterCallLimits(registry, "t", &limits)), "E105");
  Shardcall_Lowering lowering = SHARDCALL_INIT(Shardcall_Lowering);
  EXPECT_EQ(code(Shardcall_RegisterLowering(registry, &lowering)), "E148");
  // What an answer may get wrong.
  static Shardcall_LoweredCall wrong;
  lowering.name = "my.weigh";
  lowering.lower = [](const Shardcall_LoweringRequest*, Shardcall_LoweredCall* answer, void*) {
    *answer = wrong;
    return 0;
  };
  ASSERT_EQ(code(Shardcall_RegisterLowering(registry, &lowering)), "");
  Shardcall_Module* module = nullptr;
  ASSERT_EQ(Shardcall_Module_Read(kMarked, sizeof(kMarked) - 1, "m.hlo", &module), nullptr);
  Shardcall_Options options = SHARDCALL_INIT(Shardcall_Options);
  options.registry = registry;
  const auto partition = [&] {
    Shardcall_Program* program = nullptr;
    std::string said = code(Shardcall_PartitionModule(module, &options, &program));
    Shardcall_Program_Destroy(program);
    return said;
  };
  EXPECT_EQ(partition(), "");  // skipped: the body
  const int32_t types[] = {99, 11};
  wrong.target = "weigh";
  wrong.operand_types = types;
  EXPECT_EQ(partition(), "E119");
  wrong.operand_types = nullptr;
  wrong.api_version = 7;
  EXPECT_EQ(partition(), "E119");
  wrong.api_version = 0;
  wrong.num_results = 3;
  EXPECT_EQ(partition(), "E119");
  Shardcall_Shape token = SHARDCALL_INIT(Shardcall_Shape);
  token.type = 17;  // a result of a lowering is an array
  wrong.num_results = 1;
  wrong.results = &token;
  EXPECT_EQ(partition(), "E119");
  Shardcall_Module_Destroy(module);
  Shardcall_Registry_Destroy(registry);
}

}  // namespace
}  // namespace shardcall
