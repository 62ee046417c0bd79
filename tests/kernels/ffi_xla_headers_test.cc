// SPDX-License-Identifier: Apache-2.0
// Handlers that are compiled against XLA's own C++ FFI headers run unchanged:
// one library for each version of the headers, named by SHARDCALL_XLA_FFI_PLUGIN.
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "shardcall/kernels/ffi/xla/ffi_types.h"
#include "tests/kernels/ffi_test_util.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

void* Library() {
  static void* const library = [] {
    const char* path = std::getenv("SHARDCALL_XLA_FFI_PLUGIN");
    return dlopen(path == nullptr ? "" : path, RTLD_NOW | RTLD_LOCAL);
  }();
  return library;
}

template <typename T>
T* Symbol(const char* name) {
  EXPECT_NE(Library(), nullptr) << dlerror();
  if (Library() == nullptr) return nullptr;
  void* symbol = dlsym(Library(), name);
  EXPECT_NE(symbol, nullptr) << dlerror();
  return reinterpret_cast<T*>(symbol);
}

int Minor() { return Symbol<int()>("HeaderMinor")(); }

HandlerEntry Load(const char* name, const char* instantiate = nullptr,
                  const char* prepare = nullptr, const char* initialize = nullptr) {
  abi::HandlerBundle stages = {};
  stages.execute = Symbol<abi::Handler>(name);
  if (instantiate != nullptr) stages.instantiate = Symbol<abi::Handler>(instantiate);
  if (prepare != nullptr) stages.prepare = Symbol<abi::Handler>(prepare);
  if (initialize != nullptr) stages.initialize = Symbol<abi::Handler>(initialize);
  auto entry = MakeTypedEntry("t", "Host", stages, "plugin");
  EXPECT_TRUE(entry.ok()) << entry.status();
  return *std::move(entry);
}

template <typename T>
BufferView Scalar(T& value, ElementType type) {
  return {type, {}, &value};
}

TEST(XlaHeaders, TheVersionIsThatOfTheHeaders) {
  const char* expected = std::getenv("SHARDCALL_XLA_FFI_MINOR");
  if (expected != nullptr) EXPECT_EQ(std::to_string(Minor()), expected);
  const auto metadata =
      QueryFfiMetadata(Symbol<abi::Handler>("AxpyHandler"), "t", abi::Stage::kExecute);
  ASSERT_TRUE(metadata.ok()) << metadata.status();
  EXPECT_EQ(metadata->minor, Minor());
}

TEST(XlaHeaders, BuffersAttributesAndTraits) {
  const HandlerEntry entry = Load("AxpyHandler");
  EXPECT_EQ(entry.traits, (std::vector<std::string>{"COMMAND_BUFFER_COMPATIBLE"}));
  std::vector<float> x = {1, 2}, y = {10, 20}, out(2);
  TestCall call("{a = 3.0 : f32}");
  const absl::Status status = call.Run(entry, {F32(x), F32(y)}, {F32(out)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(out, (std::vector<float>{13, 26}));
}

TEST(XlaHeaders, WrongCallsAreErrorsThatSayWhy) {
  const HandlerEntry entry = Load("AxpyHandler");
  std::vector<float> x = {1, 2}, y = {10, 20, 30}, out(2);
  std::vector<double> d(2);
  const auto message = [&](const std::string& attributes, std::vector<BufferView> operands) {
    TestCall call(attributes);
    const absl::Status status = call.Run(entry, operands, {F32(out)});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(DiagnosticCode(status), "E317");
    return std::string(status.message());
  };
  EXPECT_THAT(message("{a = 3.0 : f32}", {F32(x), F32(y)}), HasSubstr("differ in length"));
  EXPECT_THAT(message("{a = 3.0 : f32}", {F32(x)}), HasSubstr("Wrong number of arguments"));
  EXPECT_THAT(message("{}", {F32(x), F32(x)}), HasSubstr("Wrong number of attributes"));
  EXPECT_THAT(message("{a = 3.0 : f64}", {F32(x), F32(x)}), HasSubstr("Failed to decode"));
  EXPECT_THAT(message("{b = 3.0 : f32}", {F32(x), F32(x)}), HasSubstr("a"));
  EXPECT_THAT(message("{a = 3.0 : f32}", {F32(x), View(d, {2}, ElementType::kF64)}),
              HasSubstr("Wrong buffer dtype: expected F32 but got F64"));
}

TEST(XlaHeaders, RemainingArgumentsAndResults) {
  const HandlerEntry entry = Load("SumAllHandler");
  std::vector<float> x = {1, 2}, out(2);
  int32_t count = 0;
  TestCall call;
  ASSERT_TRUE(call.Run(entry, {F32(x), F32(x), F32(x)}, {F32(out)}).ok());
  EXPECT_EQ(out, (std::vector<float>{3, 6}));
  ASSERT_TRUE(call.Run(entry, {F32(x)}, {F32(out), Scalar(count, ElementType::kS32)}).ok());
  EXPECT_EQ(count, 1);
  ASSERT_TRUE(call.Run(entry, {}, {F32(out)}).ok());
  EXPECT_EQ(out, (std::vector<float>{0, 0}));
}

TEST(XlaHeaders, OptionalArguments) {
  const HandlerEntry entry = Load("AddOptionalHandler");
  float x = 1, y = 2, out = 0;
  TestCall call;
  ASSERT_TRUE(call.Run(entry, {Scalar(x, ElementType::kF32), Scalar(y, ElementType::kF32)},
                       {Scalar(out, ElementType::kF32)})
                  .ok());
  EXPECT_EQ(out, 3);
  ASSERT_TRUE(
      call.Run(entry, {Scalar(x, ElementType::kF32)}, {Scalar(out, ElementType::kF32)}).ok());
  EXPECT_EQ(out, 101);
}

TEST(XlaHeaders, AttributesOfEveryKind) {
  const HandlerEntry entry = Load("AttributesHandler");
  int32_t out = 0;
  TestCall call(
      "{flag = true, i32 = -7 : i32, f64 = 0.5 : f64, text = \"hello\", ints = array<i64: 1, 2, "
      "3>, floats = dense<[1.0, 2.5]> : tensor<2xf32>, kind = 2 : i32, range = {lo = 1 : i64, hi "
      "= 9 : i64}, nested = {inner = {deep = 42 : i32}}}");
  const absl::Status status = call.Run(entry, {}, {Scalar(out, ElementType::kS32)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(out, 42);
}

TEST(XlaHeaders, ErrorsKeepTheirCodeAndThrowsAreCaught) {
  TestCall call;
  absl::Status status = call.Run(Load("FailsHandler"), {}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("says no"));
  status = call.Run(Load("ThrowsHandler"), {}, {});
  EXPECT_EQ(DiagnosticCode(status), "E317");
}

TEST(XlaHeaders, RunIdDeviceScratchAndTokens) {
  const HandlerEntry entry = Load("ContextsHandler");
  int64_t out = 0;
  TestCall call;
  call.context.run_id = 12;
  call.context.device_ordinal = 3;
  const absl::Status status =
      call.Run(entry, {{ElementType::kToken, {}, nullptr}}, {Scalar(out, ElementType::kS64)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(out, 12003);
}

TEST(XlaHeaders, FuturesOnTheThreadPool) {
  const HandlerEntry entry = Load("SquareLaterHandler");
  std::vector<float> x(100), out(100);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  TestCall call;
  ASSERT_TRUE(call.Run(entry, {F32(x)}, {F32(out)}).ok());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(out[i], x[i] * x[i]);
}

TEST(XlaHeaders, AFutureThatFailsKeepsItsCode) {
  TestCall call;
  const absl::Status status = call.Run(Load("FailLaterHandler"), {}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("later no"));
}

TEST(XlaHeaders, AFutureThatIsNotCompletedMissesTheDeadline) {
  TestCall call;
  call.context.deadline = absl::Milliseconds(20);
  const absl::Status status = call.Run(Load("NeverHandler"), {}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(DiagnosticCode(status), "E319");
  Symbol<void()>("CompleteNever")();
}

abi::TypeId* CallForTypeId(const char* symbol) { return Symbol<abi::TypeId*()>(symbol)(); }

// Registers the type of the library's states, as a manifest does.
void RegisterCounter() {
  abi::TypeId* id = CallForTypeId("CounterTypeId");
  // The headers of 0.1 give each state with its deleter, and know no type info.
  const auto deleter = Minor() == 1 ? nullptr : Symbol<abi::TypeInfo>("CounterInfo")->deleter;
  id->id = *RegisterFfiType("plugin.Counter", id->id, deleter);
}

TEST(XlaHeaders, StateNeedsItsTypeAndLivesWithTheProgram) {
  if (CallForTypeId("CounterTypeId")->id == 0 && Minor() >= 2) {
    abi::HandlerBundle stages = {Symbol<abi::Handler>("CountInstantiateHandler"), nullptr, nullptr,
                                 Symbol<abi::Handler>("CountHandler")};
    const absl::Status early = MakeTypedEntry("t", "Host", stages, "plugin").status();
    EXPECT_EQ(DiagnosticCode(early), "E144") << early;
  }
  RegisterCounter();
  const HandlerEntry entry = Load("CountHandler", "CountInstantiateHandler");
  CallSite site;
  TestCall call("{start = 40 : i64}");
  call.context.call_site = &site;
  int64_t out = 0;
  for (int i = 1; i <= 3; ++i) {
    const absl::Status status = call.Run(entry, {}, {Scalar(out, ElementType::kS64)});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(out, 40 + i);
  }
}

TEST(XlaHeaders, PrepareAndInitializeRunBeforeEachExecution) {
  RegisterCounter();
  const HandlerEntry entry = Load("CountHandler", "CountInstantiateHandler", "CountPrepareHandler",
                                  "CountInitializeHandler");
  CallSite site;
  TestCall call("{start = 40 : i64}");
  call.context.call_site = &site;
  int64_t out = 0;
  for (int i = 1; i <= 2; ++i) {
    const absl::Status status = call.Run(entry, {}, {Scalar(out, ElementType::kS64)});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(out, 40 + i * 1101);
  }
}

TEST(XlaHeaders, PrepareAndInitializeLeaveStatesForTheCall) {
  if (Minor() < 3) GTEST_SKIP() << "only instantiate has a state before 0.3";
  RegisterCounter();
  const HandlerEntry entry =
      Load("AddStatesHandler", nullptr, "MakePreparedHandler", "MakeInitializedHandler");
  TestCall call;
  int64_t out = 0;
  const absl::Status status = call.Run(entry, {}, {Scalar(out, ElementType::kS64)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(out, 17);
}

TEST(XlaHeaders, UserDataIsFoundByItsType) {
  abi::TypeId* id = CallForTypeId("SettingsTypeId");
  id->id = *RegisterFfiType("plugin.Settings", id->id, nullptr);
  const HandlerEntry entry = Load("ReadSettingsHandler");
  int64_t settings = 99, out = 0;
  HandlerRegistry registry;
  registry.SetUserData(id->id, &settings);
  TestCall call;
  EXPECT_FALSE(call.Run(entry, {}, {Scalar(out, ElementType::kS64)}).ok());
  call.context.user_data = &registry.user_data();
  ASSERT_TRUE(call.Run(entry, {}, {Scalar(out, ElementType::kS64)}).ok());
  EXPECT_EQ(out, 99);
}

}  // namespace
}  // namespace shardcall
