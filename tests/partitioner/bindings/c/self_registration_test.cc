// SPDX-License-Identifier: Apache-2.0
// Libraries that register their handlers themselves, by XLA_FFI_GetApi: what is taken, for
// whom, and what is refused. tests/kernels has the same by XLA's own headers.
#include "shardcall/kernels/ffi/load/self_registration.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/platform.h"
#include "shardcall/partitioner/api/targets.h"
#include "shardcall/partitioner/bindings/c/plugin.h"
#include "shardcall/partitioner/bindings/manifest/manifest.h"
#include "shardcall/partitioner/bindings/xla/registration.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

std::string Plugin(const std::string& name = "") {
  return SHARDCALL_PLUGIN_DIR "/libself_registering" + name + ".so";
}

struct Registries {
  TargetRegistry targets;
  HandlerRegistry handlers;
  absl::Status Load(const std::string& path) { return LoadPlugin(path, &targets, &handlers); }
  absl::Status Manifest(const std::string& targets_text, const std::string& name = "") {
    return LoadManifest(
        "{\"library\": \"" + Plugin(name) + "\", \"targets\": [" + targets_text + "]}", "m.json",
        &targets, &handlers);
  }
};

constexpr char kRules[] = R"({"name": "self_twice", "rule": "i j -> i j"},
                             {"name": "self_states", "rule": "i j -> i j"})";
constexpr char kProgram[] = R"(HloModule m, num_partitions=4

ENTRY %main (x: f32[10,6]) -> f32[10,6] {
  %x = f32[10,6]{1,0} parameter(0), sharding={devices=[2,2]<=[4]}
  %y = f32[10,6]{1,0} custom-call(%x), custom_call_target="self_twice", api_version=API_VERSION_TYPED_FFI
  ROOT %z = f32[10,6]{1,0} custom-call(%y), custom_call_target="self_states", api_version=API_VERSION_TYPED_FFI
}
)";

TextOptions With(const Registries& r) {
  TextOptions options;
  options.targets = &r.targets;
  options.handlers = &r.handlers;
  return options;
}

float FiveBy(const std::string& target, const HandlerRegistry& handlers) {
  const auto module = ParseText(
      "HloModule m\nENTRY e { x = f32[] parameter(0)\n"
      "ROOT y = f32[] custom-call(x), custom_call_target=\"" +
      target + "\", api_version=API_VERSION_TYPED_FFI }\n");
  const auto y =
      Evaluate(*module, {Tensor::From(ElementType::kF32, {}, std::vector<float>{5})}, &handlers);
  EXPECT_TRUE(y.ok()) << y.status();
  return y.ok() ? *reinterpret_cast<const float*>((*y)[0].data()) : 0;
}

TEST(SelfRegistration, AManifestOfRulesAloneIsEnough) {
  Registries r;
  const absl::Status status = r.Manifest(kRules);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(WhyNotEqual(kProgram, With(r)), "");
  EXPECT_EQ(FiveBy("self_twice", r.handlers), 10);
  EXPECT_EQ(FiveBy("self_states", r.handlers), 15);  // the states of three stages
}

TEST(SelfRegistration, WhatIsRegisteredIsListedWithItsOriginForEveryPlatform) {
  Registries r;
  ASSERT_TRUE(r.Load(Plugin()).ok());
  EXPECT_EQ(r.handlers.size(), 3);
  const HandlerEntry* states = *r.handlers.Find("self_states", "Host");
  EXPECT_EQ(states->source, Plugin());
  EXPECT_EQ(states->traits, (std::vector<std::string>{"COMMAND_BUFFER_COMPATIBLE"}));
  EXPECT_TRUE((*r.handlers.Find("self_twice", "Host"))->traits.empty());
  EXPECT_EQ((*r.handlers.Find("self_twice", "ABACUS"))->platform, "Abacus");
  const std::string table = DescribeTargets(r.targets, r.handlers);
  EXPECT_THAT(table, HasSubstr("self_twice               Abacus     4      -"));
  EXPECT_THAT(table, HasSubstr(Plugin()));
}

TEST(SelfRegistration, TargetsWithoutARuleAreE101AsElsewhere) {
  Registries r;
  ASSERT_TRUE(r.Load(Plugin()).ok());
  EXPECT_THAT(PartitionText(kProgram, With(r)), Fails("E101", "self_twice"));
  EXPECT_THAT(PartitionText(kProgram, With(r)), Fails("E101", "in a manifest (--plugin="));
  // The rule comes from a manifest of its own.
  ASSERT_TRUE(LoadManifest(std::string("{\"targets\": [") + kRules + "]}", "rules.json", &r.targets,
                           &r.handlers)
                  .ok());
  EXPECT_EQ(WhyNotEqual(kProgram, With(r)), "");
}

TEST(SelfRegistration, ALibraryGivesItAgainWhenItIsLoadedAgain) {
  for (int k = 0; k < 2; ++k) {
    Registries r;
    ASSERT_TRUE(r.Load(Plugin()).ok());
    EXPECT_EQ(r.handlers.size(), 3);
    ASSERT_TRUE(r.Load(Plugin()).ok());  // equal ones pass
    ASSERT_TRUE(r.Manifest(kRules).ok());
    EXPECT_EQ(r.handlers.size(), 3);
  }
}

TEST(SelfRegistration, AManifestMayNameATargetWithoutARule) {
  Registries r;
  ASSERT_TRUE(r.Manifest(R"({"name": "self_twice"})").ok());
  EXPECT_EQ(r.targets.Find("self_twice", ""), nullptr);
  EXPECT_THAT(r.Manifest(R"({"name": "self_thrice"})"),
              Fails("E141", "one of \"rule\", \"rules\" and \"batch_dims\", found neither"));
}

TEST(SelfRegistration, AManifestWithARuleAloneForATargetOfNobodyIsE140AtTheRun) {
  Registries r;
  ASSERT_TRUE(r.Manifest(R"({"name": "self_thrice", "rule": "i -> i"})").ok());
  EXPECT_THAT(r.handlers.Find("self_thrice", "Host").status(), Fails("E140", "self_twice"));
}

TEST(SelfRegistration, TwoLibrariesOfOneNameAreNamedBoth) {
  Registries r;
  ASSERT_TRUE(r.Load(Plugin()).ok());
  const absl::Status status = r.Load(Plugin("_rival"));
  EXPECT_THAT(status, Fails("E141", Plugin()));
  EXPECT_THAT(status, Fails("E141", Plugin("_rival")));
  EXPECT_EQ(r.handlers.size(), 3);
}

TEST(SelfRegistration, EveryFaultIsOneDiagnosticAndNothingIsTaken) {
  for (const auto& [name, code, part] :
       std::vector<std::tuple<const char*, const char*, const char*>>{
           {"_no_name", "E141", "a name that is empty"},
           {"_no_platform", "E141",
            "as target \"self_twice\": expected the name of a target, and "
            "of a platform, found a platform that is empty"},
           {"_no_execute", "E141", "a function for stage execute"},
           {"_small_struct", "E141", "arguments of 84 bytes or more, found 40"},
           {"_null_struct", "E141", "found null"},
           {"_of_other_version", "E144", "found 0.99"},
           {"_two_of_a_name", "E141", "has a handler for Host already"},
           {"_no_type", "E317", ""},
           {"_later", "E142", "registers no handler itself"}}) {
    for (const bool manifest : {false, true}) {
      Registries r;
      const absl::Status status =
          manifest ? r.Manifest(R"({"name": "t", "rule": "i -> i"})", name) : r.Load(Plugin(name));
      if (std::string(name) == "_no_type") {  // the state is refused when it is set
        ASSERT_TRUE(status.ok()) << status;
        const auto module = ParseText(
            "HloModule m\nENTRY e { x = f32[] parameter(0)\nROOT y = f32[] custom-call(x), "
            "custom_call_target=\"self_states\", api_version=API_VERSION_TYPED_FFI }\n");
        EXPECT_THAT(Evaluate(*module, {Tensor::From(ElementType::kF32, {}, std::vector<float>{5})},
                             &r.handlers),
                    Fails("E317", "type id 987654, which is not registered"));
        continue;
      }
      if (manifest && std::string(name) == "_later") {
        EXPECT_TRUE(status.ok()) << status;  // it may be there for its symbols
        continue;
      }
      EXPECT_THAT(status, Fails(code, part)) << name;
      EXPECT_THAT(std::string(status.message()), HasSubstr(Plugin(name))) << name;
      EXPECT_EQ(r.handlers.size(), 0) << name;
      EXPECT_TRUE(r.targets.List().empty()) << name;
    }
  }
}

TEST(SelfRegistration, ALoadThatIsGivenUpTakesNothingAndALaterOneTakesIt) {
  Registries r;
  EXPECT_THAT(
      LoadPlugin(Plugin("_hangs"), &r.targets, &r.handlers, nullptr, absl::Milliseconds(100)),
      Fails("E319", "the start-up code of the library"));
  EXPECT_EQ(r.handlers.size(), 0);
  const absl::Status later = r.Load(Plugin("_hangs"));  // waits for the first one
  ASSERT_TRUE(later.ok()) << later;
  EXPECT_EQ(FiveBy("self_twice", r.handlers), 10);
}

TEST(SelfRegistration, AThreadOfTheStartUpCodeRegistersForItsLibrary) {
  for (const char* name : {"_on_a_thread", "_asks_on_a_thread"}) {
    Registries r;
    const absl::Status status = r.Load(Plugin(name));
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(FiveBy("self_twice", r.handlers), 10);
  }
}

TEST(SelfRegistration, LibrariesThatAreLoadedAtOnceKeepWhatIsTheirs) {
  std::vector<std::thread> threads;
  for (int k = 0; k < 8; ++k) {
    threads.emplace_back([k] {
      Registries r;
      const std::string name = k % 2 == 0 ? "_first" : "_second";
      const absl::Status status = r.Load(Plugin(name));
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(r.handlers.size(), 3);
      const auto found = r.handlers.Find("self_twice", "cpu");
      EXPECT_TRUE(found.ok() && (*found)->source == Plugin(name));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Only the first load runs start-up code; the others get what it registered, at whatever
// time they come. Copies of a library, as each is loaded for the first time only once.
void LoadOnManyThreadsForTheFirstTime(const std::string& library) {
  for (int copy = 0; copy < 60; ++copy) {
    const std::string path =
        absl::StrCat(testing::TempDir(), "loaded_at_once_", getpid(), library, copy, ".so");
    std::filesystem::copy_file(Plugin(library), path);
    std::atomic<int> waiting = 4;
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; ++k) {
      threads.emplace_back([&] {
        Registries r;
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        const absl::Status status = r.Load(path);
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_EQ(r.handlers.size(), 1);
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::filesystem::remove(path);
  }
}

TEST(SelfRegistration, ThreadsThatLoadOneLibraryForTheFirstTimeAllGetItsHandlers) {
  LoadOnManyThreadsForTheFirstTime("_rival");
}

TEST(SelfRegistration, SoDoThoseOfALibraryThatRegistersOnAThreadOfItsOwn) {
  LoadOnManyThreadsForTheFirstTime("_on_a_thread");
}

TEST(SelfRegistration, OutsideOfALoadItIsAnErrorThatSaysSo) {
  const auto library = Library::Open(Plugin());
  ASSERT_TRUE(library.ok()) << library.status();
  const auto call = reinterpret_cast<const char* (*)()>((*library)->Find("register_later"));
  const char* const said = call();
  ASSERT_NE(said, nullptr);
  EXPECT_THAT(said, HasSubstr("E141 a handler cannot be registered as target \"self_later\": "
                              "expected a call while shardcall loads the library"));
  EXPECT_THAT(said, HasSubstr("Fix: register it in the library's start-up code"));
  Registries r;
  ASSERT_TRUE(r.Load(Plugin()).ok());
  EXPECT_FALSE(r.handlers.Find("self_later", "Host").ok());
}

TEST(SelfRegistration, ALibraryThatBringsItsOwnApiKeepsIt) {
  for (const char* name : {"_own_api", "_own_api_on_a_thread"}) {
    Registries r;
    EXPECT_THAT(r.Load(Plugin(name)), Fails("E142", "registers no handler itself"));
    const auto library = Library::Open(Plugin(name));
    const auto count = reinterpret_cast<int (*)()>((*library)->Find("OwnRegistrations"));
    EXPECT_EQ(count(), 2) << name;
  }
}

TEST(SelfRegistration, ARegistryOfTheProgramTakesItWithItsPlatforms) {
  Registry r;
  ASSERT_TRUE(LoadPlugin(Plugin(), &r.rules, &r.handlers).ok());
  const auto abacus = r.CustomCallTargets("abacus");
  ASSERT_TRUE(abacus.ok()) << abacus.status();
  ASSERT_EQ(abacus->size(), 1);
  EXPECT_EQ(abacus->at("self_twice").platform, "Abacus");
  const auto host = r.CustomCallTargets("cpu");
  EXPECT_NE(host->at("self_states").stages.prepare, nullptr);
}

TEST(SelfRegistration, WithoutARegistryOfHandlersThereIsNothingToTake) {
  TargetRegistry targets;
  EXPECT_TRUE(LoadPlugin(Plugin(), &targets).ok());
  EXPECT_THAT(LoadPlugin(Plugin("_no_name"), &targets), Fails("E141", "empty"));
}

}  // namespace
}  // namespace shardcall
