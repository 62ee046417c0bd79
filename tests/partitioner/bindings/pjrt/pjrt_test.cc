// SPDX-License-Identifier: Apache-2.0
// PJRT as an engine, against a backend made up here: what is given on, what comes
// back, and what is said where a plugin fails. XLA's own backend: run_on_pjrt.py.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "shardcall/kernels/ffi/exported_handler.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_engine.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_plugin.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_program.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/execute/watched_threads.h"
#include "shardcall/sharding/base/status.h"
#include "tests/partitioner/bindings/pjrt/fake_backend.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

using abi::Function;

constexpr char kIdentity[] = R"(
HloModule m, num_partitions=2

ENTRY main {
  x = f32[2,3]{1,0} parameter(0)
  ROOT y = f32[2,3]{1,0} copy(x)
}
)";

Module Parsed(absl::string_view text) {
  auto module = ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(),
                            "test.hlo");
  EXPECT_TRUE(module.ok()) << module.status();
  return *std::move(module);
}

Tensor Numbers(float first) {
  return Tensor::From<float>(ElementType::kF32, {2, 3},
                             {first, first + 1, first + 2, first + 3, first + 4, first + 5});
}

absl::StatusOr<std::vector<std::vector<Tensor>>> RunIdentity(
    const FakeBackend& backend, absl::Duration deadline = absl::Seconds(30),
    absl::string_view text = kIdentity) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const Plugin> plugin,
                             Plugin::FromApi(backend.api(), "made up"));
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const Client> client, Client::Create(plugin, 2));
  SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const LoadedProgram> program,
                             LoadedProgram::Compile(std::move(client), Parsed(text), 2, nullptr));
  return program->Run({{Numbers(0)}, {Numbers(10)}}, deadline);
}

TEST(PjrtTest, EveryDeviceGetsItsArgumentsAndGivesItsResults) {
  FakeBackend backend;
  const auto results = RunIdentity(backend);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 2u);
  EXPECT_TRUE(BitwiseEqual((*results)[0][0], Numbers(0)));
  EXPECT_TRUE(BitwiseEqual((*results)[1][0], Numbers(10)));
  EXPECT_EQ(backend.alive(), 0);
}

TEST(PjrtTest, AHostPlatformIsAskedForTheDevicesThatItLacks) {
  FakeBackend backend;
  backend.devices = 1;
  EXPECT_TRUE(RunIdentity(backend).ok());
  backend.platform = "cuda";
  const absl::Status status = RunIdentity(backend).status();
  EXPECT_EQ(DiagnosticCode(status), "E335") << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "found 1 of platform cuda")) << status;
  EXPECT_EQ(backend.alive(), 0);
}

TEST(PjrtTest, AFailureOfAnyFunctionIsSaidWithItsNameAndLeavesNothingBehind) {
  for (Function f :
       {Function::kPluginInitialize, Function::kEventAwait, Function::kClientCreate,
        Function::kClientPlatformName, Function::kClientAddressableDevices,
        Function::kDeviceGetDescription, Function::kDeviceDescriptionId, Function::kClientCompile,
        Function::kLoadedExecutableGetExecutable, Function::kExecutableNumOutputs,
        Function::kClientBufferFromHostBuffer, Function::kLoadedExecutableExecute,
        Function::kBufferDimensions, Function::kBufferToHostBuffer}) {
    SCOPED_TRACE(abi::FunctionName(f));
    FakeBackend backend;
    backend.fails = f;
    const absl::Status status = RunIdentity(backend).status();
    EXPECT_EQ(DiagnosticCode(status), "E334") << status;
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(absl::StrContains(status.message(), abi::FunctionName(f))) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "says the backend")) << status;
    EXPECT_EQ(backend.alive(), 0);
    backend.fails.reset();
    EXPECT_TRUE(RunIdentity(backend).ok());
  }
}

TEST(PjrtTest, APluginWithoutAFunctionIsToldSo) {
  FakeBackend backend;
  backend.Truncate(Function::kClientDestroy);
  const absl::Status status = RunIdentity(backend).status();
  EXPECT_EQ(DiagnosticCode(status), "E334") << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "has no PJRT_Client_PlatformName")) << status;
  EXPECT_EQ(backend.alive(), 0);
}

TEST(PjrtTest, WhatIsNoPluginOrOfAnotherVersionIsRefused) {
  EXPECT_EQ(DiagnosticCode(Plugin::FromApi(nullptr, "null").status()), "E333");
  FakeBackend backend;
  backend.version().minor = abi::kOldestMinorVersion - 1;
  const absl::Status status = Plugin::FromApi(backend.api(), "old").status();
  EXPECT_EQ(DiagnosticCode(status), "E333") << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "found 0.80")) << status;
  backend.version().major = 1;
  EXPECT_EQ(DiagnosticCode(Plugin::FromApi(backend.api(), "new").status()), "E333");
  EXPECT_EQ(DiagnosticCode(Plugin::Open("/nowhere.so").status()), "E143");
  EXPECT_EQ(DiagnosticCode(Plugin::Open("libm.so.6").status()).substr(0, 1), "E");
}

TEST(PjrtTest, HandlersOfThePlatformsNameAreGivenOnWhateverThatIs) {
  HandlerRegistry handlers;
  const auto add = [&](std::string target, std::string platform) {
    HandlerEntry entry;
    entry.target = std::move(target);
    entry.platform = std::move(platform);
    entry.host = [](const HandlerContext&, absl::Span<const BufferView>,
                    absl::Span<const BufferView>) { return absl::OkStatus(); };
    ASSERT_TRUE(handlers.Register(std::move(entry)).ok());
  };
  add("one", "Abacus");
  add("one", "Host");
  add("two", "cuda");
  for (const auto& [platform, given] :
       std::vector<std::pair<const char*, std::vector<std::string>>>{{"abacus", {"one for Abacus"}},
                                                                     {"cpu", {"one for Host"}},
                                                                     {"cuda", {"two for CUDA"}},
                                                                     {"slide rule", {}}}) {
    FakeBackend backend;
    backend.platform = platform;
    const auto plugin = Plugin::FromApi(backend.api(), "made up");
    auto client = Client::Create(*plugin, 1);
    ASSERT_TRUE(client.ok()) << client.status();
    const auto program = LoadedProgram::Compile(*client, Parsed(R"(
HloModule m
ENTRY main {
  x = f32[2,3]{1,0} parameter(0)
  y = f32[2,3]{1,0} custom-call(x), custom_call_target="one", api_version=API_VERSION_TYPED_FFI
  ROOT z = f32[2,3]{1,0} custom-call(y), custom_call_target="two", api_version=API_VERSION_TYPED_FFI
}
)"),
                                                1, &handlers);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(backend.handlers, given) << platform;
  }
}

TEST(PjrtTest, ArgumentsThatDoNotFitAreRefused) {
  FakeBackend backend;
  const auto plugin = Plugin::FromApi(backend.api(), "made up");
  auto client = Client::Create(*plugin, 2);
  const auto program = LoadedProgram::Compile(*client, Parsed(kIdentity), 2, nullptr);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto code = [&](std::vector<std::vector<Tensor>> arguments) {
    const absl::Status status = (*program)->Run(std::move(arguments), absl::Seconds(30)).status();
    return std::string(DiagnosticCode(status));
  };
  EXPECT_EQ(code({{Numbers(0)}}), "E313");
  EXPECT_EQ(code({{Numbers(0)}, {}}), "E313");
  EXPECT_EQ(code({{Numbers(0)}, {Tensor()}}), "E313");
  EXPECT_EQ(code({{Numbers(0)}, {Tensor::Zeros(ElementType::kF32, {3, 2})}}), "E313");
  EXPECT_EQ(code({{Numbers(0)}, {Tensor::Zeros(ElementType::kS32, {2, 3})}}), "E313");
}

TEST(PjrtTest, ProgramsThatPjrtCannotBeGivenAreRefused) {
  FakeBackend backend;
  const absl::Status tuple = RunIdentity(backend, absl::Seconds(30), R"(
HloModule m
ENTRY main {
  x = f32[2,3]{1,0} parameter(0)
  t = (f32[2,3]{1,0}, f32[2]{0}) parameter(1)
  ROOT y = f32[2,3]{1,0} copy(x)
}
)")
                                 .status();
  EXPECT_EQ(DiagnosticCode(tuple), "E336") << tuple;
  const absl::Status type = RunIdentity(backend, absl::Seconds(30), R"(
HloModule m
ENTRY main {
  x = f6e2m3fn[2,3]{1,0} parameter(0)
  ROOT y = f6e2m3fn[2,3]{1,0} copy(x)
}
)")
                                .status();
  EXPECT_EQ(DiagnosticCode(type), "E336") << type;
  backend.results = 2;
  EXPECT_EQ(DiagnosticCode(RunIdentity(backend).status()), "E336");
  EXPECT_EQ(backend.alive(), 0);
}

TEST(PjrtTest, AProgramThatDoesNotEndIsLeftBehindAtTheDeadline) {
  FakeBackend backend;
  backend.hangs = true;
  const absl::Status status = RunIdentity(backend, absl::Milliseconds(100)).status();
  EXPECT_EQ(DiagnosticCode(status), "E337") << status;
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_EQ(ThreadsLeftBehind(), 1);
  EXPECT_GT(backend.alive(), 0);
  backend.hangs = false;
  for (int k = 0; k < 1000 && (ThreadsLeftBehind() > 0 || backend.alive() > 0); ++k) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(ThreadsLeftBehind(), 0);
  EXPECT_EQ(backend.alive(), 0);
}

// Older plugins read groups of devices as lists alone.
TEST(PjrtTest, GroupsAreListedForOldPluginsOnly) {
  constexpr char kReduce[] = R"(
HloModule m, num_partitions=4
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[2,3]{1,0} parameter(0)
  ROOT y = f32[2,3]{1,0} all-reduce(x), replica_groups=[2,2]<=[2,2]T(1,0), channel_id=1, use_global_device_ids=true, to_apply=add
}
)";
  FakeBackend backend;
  for (int minor : {abi::kOldestMinorVersion, abi::kIotaGroupsMinorVersion}) {
    backend.version().minor = minor;
    ASSERT_TRUE(RunIdentity(backend, absl::Seconds(30), kReduce).ok());
    const auto given = ReadModuleProto(backend.program, std::make_shared<Context>(), "given");
    ASSERT_TRUE(given.ok()) << given.status();
    const Module& module = *given;
    const ReplicaGroups& groups =
        module.instr(module.comp(module.entry()).root).as<CollectiveAttrs>().groups;
    if (minor == abi::kOldestMinorVersion) {
      ASSERT_EQ(groups.form, ReplicaGroups::Form::kLists);
      ASSERT_EQ(groups.lists.size(), 2u);
      EXPECT_EQ(std::vector<int64_t>(groups.lists[0].begin(), groups.lists[0].end()),
                (std::vector<int64_t>{0, 2}));
      EXPECT_EQ(std::vector<int64_t>(groups.lists[1].begin(), groups.lists[1].end()),
                (std::vector<int64_t>{1, 3}));
    } else {
      EXPECT_EQ(groups.form, ReplicaGroups::Form::kIota);
    }
  }
}

}  // namespace
}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
