// SPDX-License-Identifier: Apache-2.0
// Libraries that are loaded at run time: plugins in C, ordinary XLA FFI
// libraries and untyped ones by their manifests, and what is refused.
#include "shardcall/partitioner/bindings/c/plugin.h"

#include <cstdio>
#include <fstream>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/kernels/ffi/timed_call.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/bindings/manifest/manifest.h"
#include "shardcall/partitioner/check/check_target.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

std::string Plugin(const char* name) {
  return std::string(SHARDCALL_PLUGIN_DIR "/lib") + name + ".so";
}

struct Registries {
  TargetRegistry targets;
  HandlerRegistry handlers;
  absl::Status Load(const std::string& path) { return LoadPlugin(path, &targets, &handlers); }
  // A manifest of one target of a library.
  absl::Status Manifest(const char* library, const std::string& entries,
                        const std::string& more = "") {
    return LoadManifest(
        "{\"library\": \"" + Plugin(library) + "\", " + more + "\"targets\": [" + entries + "]}",
        "m.json", &targets, &handlers);
  }
};

constexpr char kRowSum[] = R"(HloModule m, num_partitions=4

ENTRY %main (x: f32[10,6]) -> f32[10] {
  %x = f32[10,6]{1,0} parameter(0), sharding={devices=[2,2]<=[4]}
  ROOT %y = f32[10]{0} custom-call(%x), custom_call_target="row_sum", api_version=API_VERSION_TYPED_FFI, backend_config={scale = 2.0 : f32}
}
)";

TEST(CPlugin, GivesRuleAndHandler) {
  Registries r;
  const absl::Status status = r.Load(Plugin("c_plugin"));
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_NE(r.targets.Find("row_sum", ""), nullptr);
  EXPECT_EQ(r.targets.Find("row_sum", "")->source, Plugin("c_plugin"));
  TextOptions options;
  options.targets = &r.targets;
  options.handlers = &r.handlers;
  EXPECT_EQ(WhyNotEqual(kRowSum, options), "");
  const auto program = PartitionText(kRowSum, options);
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(CountOpcode(**program, Opcode::kAllReduce), 1);
  EXPECT_THAT(LocalText(**program), HasSubstr("f32[5]{0} custom-call("));
}

absl::StatusOr<std::vector<Tensor>> Evaluated(const std::string& text, std::vector<Tensor> inputs,
                                              const HandlerRegistry& handlers) {
  SHARDCALL_ASSIGN_OR_RETURN(const Module module, ParseText(text));
  return Evaluate(module, std::move(inputs), &handlers);
}
Tensor Scalar(float x) { return Tensor::From(ElementType::kF32, {}, std::vector<float>{x}); }
float Value(const Tensor& t, int at = 0) { return reinterpret_cast<const float*>(t.data())[at]; }

TEST(CPlugin, SaysHowAttributesFollowAndWhichResultsAreScratch) {
  Registries r;
  ASSERT_TRUE(r.Load(Plugin("c_plugin")).ok());
  EXPECT_THAT(r.targets.Find("blocks", "")->alternatives[0].attributes,
              testing::ElementsAre(testing::Pair("grid_x", "cdiv(m, 4)")));
  EXPECT_THAT(r.targets.Facts("blocks")->limits->scratch, testing::ElementsAre(1));
}

// The handler gets two elements in a byte, the program has one.
TEST(CPlugin, ElementsOfFourBitsArePackedForItsHandlers) {
  Registries r;
  ASSERT_TRUE(r.Load(Plugin("c_plugin")).ok());
  const auto call = ParseText(
      "HloModule m\nENTRY e { x = u4[2,3] parameter(0)\nROOT y = u4[2,3] custom-call(x), "
      "custom_call_target=\"reverse_rows\", api_version=API_VERSION_TYPED_FFI }\n");
  ASSERT_TRUE(call.ok()) << call.status();
  const auto y = Evaluate(
      *call, {Tensor::From(ElementType::kU4, {2, 3}, std::vector<uint8_t>{1, 2, 3, 4, 5, 15})},
      &r.handlers);
  ASSERT_TRUE(y.ok()) << y.status();
  const auto* bytes = reinterpret_cast<const uint8_t*>((*y)[0].data());
  EXPECT_THAT(std::vector<int>(bytes, bytes + 6), testing::ElementsAre(3, 2, 1, 15, 5, 4));
  const auto check =
      CheckTarget({.target = "reverse_rows", .program = &*call}, r.targets, r.handlers);
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->verdict, RuleVerdict::kHolds) << RuleCheckJson(*check);
  EXPECT_TRUE(check->untested.empty()) << RuleCheckJson(*check);  // in odd sizes, too
}

TEST(CPlugin, HandlersSayWhatIsWrong) {
  Registries r;
  ASSERT_TRUE(r.Load(Plugin("c_plugin")).ok());
  const auto y = Evaluated(
      "HloModule m\nENTRY e { x = s32[2,2] parameter(0)\n"
      "ROOT y = f32[2] custom-call(x), custom_call_target=\"row_sum\" }\n",
      {Tensor::From(ElementType::kS32, {2, 2}, std::vector<int32_t>{1, 2, 3, 4})}, r.handlers);
  EXPECT_THAT(y, Fails("E317", "row_sum takes one f32 matrix"));
  EXPECT_EQ(y.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CPlugin, LoadedTwiceIsFineAndAnotherOfItsNameIsNot) {
  Registries r;
  ASSERT_TRUE(r.Load(Plugin("c_plugin")).ok());
  EXPECT_TRUE(r.Load(Plugin("c_plugin")).ok());
  const absl::Status other = r.Manifest("untyped_library", R"({"name": "row_sum", "api_version": 1,
      "symbol": "subtract_f32"})");
  EXPECT_THAT(other, Fails("E141", "libc_plugin.so"));
  EXPECT_THAT(other, Fails("E141", "libuntyped_library.so"));
}

TEST(Plugin, FaultsAreOneDiagnosticEach) {
  const std::string versions =
      absl::StrCat(SHARDCALL_C_MAJOR, ".1 to ", SHARDCALL_C_MAJOR, ".", SHARDCALL_C_MINOR,
                   ", found ", SHARDCALL_C_MAJOR, ".", SHARDCALL_C_MINOR + 1);
  for (const auto& [name, code, part] :
       std::vector<std::tuple<const char*, const char*, const char*>>{
           {"bad_version", "E142", versions.c_str()},
           {"bad_crash", "E323", "register_targets of the library"},
           {"bad_entry_crash", "E323", "shardcall_plugin of the library"},
           {"bad_null", "E142", "found null"},
           {"bad_no_entry", "E142", "does not export shardcall_plugin"},
           {"bad_undefined", "E142", "needs the symbol \"nobody_has_this\""},
           {"bad_two_rules", "E146", "one of rule, rules, batch_dims"},
           {"bad_no_registrar", "E146", "without it"},
           {"bad_empty_target", "E146", "struct_size and name"}}) {
    Registries r;
    const absl::Status status = r.Load(Plugin(name));
    EXPECT_THAT(status, Fails(code, part)) << name;
    EXPECT_THAT(status, Fails(code, "Fix: ")) << name;
  }
  Registries r;
  EXPECT_THAT(r.Load("no/such.so"), Fails("E143", "no/such.so"));
  const std::string text = testing::TempDir() + "plugin_test_no_library.so";
  std::ofstream(text) << "this is no library";
  EXPECT_THAT(r.Load(text), Fails("E142", "expected a shared library for this machine"));
  std::remove(text.c_str());
}

TEST(Plugin, OneThatDoesNotReturnInTimeIsNamedAndRegistersNothing) {
  for (const auto& [name, what] : std::vector<std::pair<const char*, const char*>>{
           {"bad_hang", "register_targets of the library \""},
           {"bad_entry_hang", "shardcall_plugin of the library \""},
           {"bad_start_hang", "the start-up code of the library \""}}) {
    Registries r;
    const absl::Status status =
        LoadPlugin(Plugin(name), &r.targets, &r.handlers, nullptr, absl::Milliseconds(100));
    EXPECT_THAT(status, Fails("E319", what + Plugin(name) + "\" has not returned within 100ms"));
    EXPECT_TRUE(r.targets.List().empty());
    EXPECT_EQ(CallsLeftBehind(), 1);
    for (int k = 0; k < 2000 && CallsLeftBehind() > 0; ++k) absl::SleepFor(absl::Milliseconds(5));
    // It went on meanwhile, and nothing more came of it.
    EXPECT_EQ(CallsLeftBehind(), 0) << name;
    EXPECT_TRUE(r.targets.List().empty());
  }
  Registries r;
  EXPECT_THAT(r.Manifest("bad_start_hang", ""), absl::OkStatus());  // loaded by now
}

TEST(Plugin, AnUntypedFunctionThatCrashesAsATypedOneIsRefused) {
  for (const std::string symbol : {"writes_through_its_second", "fills_a_page"}) {
    Registries r;
    EXPECT_THAT(r.Manifest("untyped_library",
                           R"({"name": "a", "api_version": 4, "symbol": ")" + symbol + "\"}"),
                Fails("E144", "untyped function"));
  }
}

TEST(Plugin, TwoFunctionsOfOneLibraryAreToldApart) {
  Registries r;
  ASSERT_TRUE(
      r.Manifest("untyped_library", R"({"name": "a", "api_version": 1, "symbol": "subtract_f32"})")
          .ok());
  const absl::Status status =
      r.Manifest("untyped_library", R"({"name": "a", "api_version": 2, "symbol": "subtract_f32"})");
  EXPECT_THAT(status, Fails("E141", "(subtract_f32, api 1)"));
  EXPECT_THAT(status, Fails("E141", "(subtract_f32, api 2)"));
}

TEST(Plugin, WhatAPartitionerMisusesIsOneErrorAndNeverACrash) {
  Registries r;
  ASSERT_TRUE(r.Load(Plugin("misuse_plugin")).ok());
  TextOptions options;
  options.targets = &r.targets;
  options.handlers = &r.handlers;
  const auto text = [](int mode) {
    return absl::StrCat(R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[8] parameter(0), sharding={devices=[2]<=[2]}
  ROOT c = f32[8] custom-call(x), custom_call_target="misuse", api_version=API_VERSION_TYPED_FFI, backend_config={mode = )",
                        mode, " : i64}\n}\n");
  };
  EXPECT_EQ(WhyNotEqual(text(0), options), "");
  for (int mode = 1; mode <= 7; ++mode) {
    const std::string said(PartitionText(text(mode), options).status().message());
    EXPECT_THAT(said, HasSubstr("the partition callback of \"misuse\", %c")) << mode;
    EXPECT_THAT(said, HasSubstr("Fix: ")) << mode;
  }
  // Calls without a context do nothing.
  for (int mode : {8, 9}) EXPECT_EQ(WhyNotEqual(text(mode), options), "") << mode;
}

TEST(Plugin, AMissingLibraryOfALibraryIsNamed) {
  Registries r;
  EXPECT_THAT(r.Load(Plugin("bad_dependency")), Fails("E142", "needs \"libshardcall_absent.so\""));
}

TEST(Untyped, EachAbiRunsByItsManifest) {
  Registries r;
  const absl::Status status = r.Manifest("untyped_library", R"(
      {"name": "subtract_f32", "symbol": "subtract_f32", "api_version": 1},
      {"name": "both", "symbol": "sum_and_difference", "api_version": 1},
      {"name": "next_u4", "symbol": "next_u4", "api_version": 1},
      {"name": "root", "symbol": "root", "api_version": 2},
      {"name": "add_opaque", "symbol": "add_opaque", "api_version": 3})");
  ASSERT_TRUE(status.ok()) << status;
  auto y = Evaluated(
      "HloModule m\nENTRY e { x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
      "ROOT z = f32[] custom-call(x, y), custom_call_target=\"subtract_f32\" }\n",
      {Scalar(1.25f), Scalar(0.5f)}, r.handlers);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(Value((*y)[0]), 0.75f);
  y = Evaluated(
      "HloModule m\nENTRY e { x = f32[] parameter(0)\n y = f32[] parameter(1)\n"
      "ROOT z = (f32[], f32[]) custom-call(x, y), custom_call_target=\"both\" }\n",
      {Scalar(1.25f), Scalar(0.5f)}, r.handlers);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(Value((*y)[0]), 1.75f);
  EXPECT_EQ(Value((*y)[1]), 0.75f);
  y = Evaluated(
      "HloModule m\nENTRY e { x = u4[5] parameter(0)\n"
      "ROOT z = u4[5] custom-call(x), custom_call_target=\"next_u4\" }\n",
      {Tensor::From(ElementType::kU4, {5}, std::vector<uint8_t>{1, 15, 3, 4, 5})}, r.handlers);
  ASSERT_TRUE(y.ok()) << y.status();
  const auto* bytes = reinterpret_cast<const uint8_t*>((*y)[0].data());
  EXPECT_THAT(std::vector<int>(bytes, bytes + 5), testing::ElementsAre(2, 0, 4, 5, 6));
  const std::string root =
      "HloModule m\nENTRY e { x = f32[] parameter(0)\nROOT z = f32[] custom-call(x), "
      "custom_call_target=\"root\", api_version=API_VERSION_STATUS_RETURNING }\n";
  y = Evaluated(root, {Scalar(9)}, r.handlers);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(Value((*y)[0]), 3);
  y = Evaluated(root, {Scalar(-9)}, r.handlers);
  EXPECT_THAT(y, Fails("E317", "failed: negative"));
  EXPECT_EQ(y.status().code(), absl::StatusCode::kInternal);
  const auto opaque = [](const std::string& text) {
    return "HloModule m\nENTRY e { x = f32[] parameter(0)\nROOT z = f32[] custom-call(x), "
           "custom_call_target=\"add_opaque\", api_version=API_VERSION_STATUS_RETURNING_UNIFIED, "
           "backend_config=\"" +
           text + "\" }\n";
  };
  y = Evaluated(opaque("\\x00\\x00\\x20\\x41"), {Scalar(1)}, r.handlers);  // 10, with zeros
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(Value((*y)[0]), 11);
  EXPECT_THAT(Evaluated(opaque("abc"), {Scalar(1)}, r.handlers),
              Fails("E317", "opaque is no float"));
}

TEST(Untyped, ACallOfAnotherAbiIsRefusedByName) {
  Registries r;
  ASSERT_TRUE(
      r.Manifest("untyped_library", R"({"name": "root", "symbol": "root", "api_version": 2})")
          .ok());
  const auto y = Evaluated(
      "HloModule m\nENTRY e { x = f32[] parameter(0)\nROOT z = f32[] custom-call(x), "
      "custom_call_target=\"root\" }\n",
      {Scalar(9)}, r.handlers);
  EXPECT_THAT(y, Fails("E140",
                       "API_VERSION_STATUS_RETURNING, and this call has "
                       "API_VERSION_ORIGINAL"));
}

TEST(Untyped, WhatAManifestGetsWrong) {
  Registries r;
  EXPECT_THAT(
      r.Manifest("untyped_library", R"({"name": "a", "symbol": "subtract_f23", "api_version": 1})"),
      Fails("E145", "Near names: subtract_f32"));
  EXPECT_THAT(r.Manifest("untyped_library",
                         R"({"name": "a", "symbol": {"execute": "root"}, "api_version": 1})"),
              Fails("E141", "no stages"));
  EXPECT_THAT(r.Manifest("untyped_library", R"({"name": "a", "symbol": "root", "api_version": 1,
                                               "platform": ""})"),
              Fails("E141", "a platform has no name"));
}

#ifdef SHARDCALL_XLA_FFI_PLUGIN
Registries Typed(const std::string& entries, const std::string& types = "") {
  Registries r;
  const absl::Status status = LoadManifest("{\"library\": \"" SHARDCALL_XLA_FFI_PLUGIN "\", " +
                                               types + "\"targets\": [" + entries + "]}",
                                           "m.json", &r.targets, &r.handlers);
  EXPECT_TRUE(status.ok()) << status;
  return r;
}

TEST(XlaFfiLibrary, RunsOverManyDevicesByItsManifest) {
  const Registries r = Typed(R"({"name": "axpy", "symbol": "AxpyHandler",
      "rule": "i j, i j -> i j"}, {"name": "later", "symbol": "SquareLaterHandler",
      "rule": "i j -> i j"})");
  TextOptions options;
  options.targets = &r.targets;
  options.handlers = &r.handlers;
  EXPECT_EQ(WhyNotEqual(R"(HloModule m, num_partitions=8

ENTRY %main (x: f32[13,6], y: f32[13,6]) -> f32[13,6] {
  %x = f32[13,6]{1,0} parameter(0), sharding={devices=[4,2]<=[8]}
  %y = f32[13,6]{1,0} parameter(1), sharding={devices=[2,4]<=[8]}
  %z = f32[13,6]{1,0} custom-call(%x, %y), custom_call_target="axpy", api_version=API_VERSION_TYPED_FFI, backend_config={a = 3.0 : f32}
  ROOT %s = f32[13,6]{1,0} custom-call(%z), custom_call_target="later", api_version=API_VERSION_TYPED_FFI, backend_config={}
}
)",
                        options),
            "");
}

TEST(XlaFfiLibrary, StateLivesWithTheProgram) {
  const Registries r = Typed(
      R"({"name": "count", "symbol": {"instantiate": "CountInstantiateHandler",
                                      "execute": "CountHandler"}})",
      R"("types": [{"name": "test.Counter", "type_id": "_ZN7Counter2idE",
                    "type_info": "CounterInfo"}], )");
  const std::string text = R"(HloModule m
ENTRY %main (n: s32[]) -> s64[] {
  %n = s32[] parameter(0)
  %a = s64[] custom-call(), custom_call_target="count", api_version=API_VERSION_TYPED_FFI, backend_config={start = 10 : i64}, custom_call_has_side_effect=true
  ROOT %b = s64[] custom-call(), custom_call_target="count", api_version=API_VERSION_TYPED_FFI, backend_config={start = 20 : i64}, custom_call_has_side_effect=true
}
)";
  const auto y =
      Evaluated(text, {Tensor::From(ElementType::kS32, {}, std::vector<int32_t>{0})}, r.handlers);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(*reinterpret_cast<const int64_t*>((*y)[0].data()), 21);
}

TEST(XlaFfiLibrary, ErrorsAndThrowsAreDiagnostics) {
  const Registries r = Typed(R"({"name": "fails", "symbol": "FailsHandler"},
                                {"name": "throws", "symbol": "ThrowsHandler"})");
  const auto run = [&](const std::string& target) {
    return Evaluated("HloModule m\nENTRY e { ROOT z = () custom-call(), custom_call_target=\"" +
                         target + "\", api_version=API_VERSION_TYPED_FFI }\n",
                     {}, r.handlers);
  };
  EXPECT_EQ(run("fails").status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(run("fails"), Fails("E317", "says no"));
  EXPECT_THAT(run("throws"), Fails("E317", "throws"));
}

TEST(XlaFfiLibrary, AMissingSymbolHasNearNames) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  EXPECT_THAT(
      LoadManifest("{\"library\": \"" SHARDCALL_XLA_FFI_PLUGIN "\", \"targets\": [{\"name\": "
                   "\"axpy\", \"symbol\": \"AxpyHandle\"}]}",
                   "m.json", &targets, &handlers),
      Fails("E145", "AxpyHandler"));
}
#endif

}  // namespace
}  // namespace shardcall
