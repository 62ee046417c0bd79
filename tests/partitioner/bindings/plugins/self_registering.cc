// SPDX-License-Identifier: Apache-2.0
// Libraries that register their handlers in their start-up code, written against our
// declarations of XLA's FFI: one that is right, and ones with a fault each, chosen by a
// macro.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "shardcall/kernels/ffi/abi_table.h"

using namespace shardcall;  // NOLINT: a library of its own

extern "C" const abi::Api* XLA_FFI_GetApi();
namespace xla::ffi {
const abi::Api* GetXlaFfiApi();
}

namespace {

#ifdef OF_OTHER_VERSION
constexpr int kMinor = 99;
#else
constexpr int kMinor = 4;
#endif

abi::TypeId state_type = {0};
void DeleteState(void* state) { delete static_cast<float*>(state); }

// True if the frame asks for the version, and is answered.
bool Answered(abi::CallFrame* frame, abi::TypeId state = {0}) {
  if (frame->extension_start == nullptr) return false;
  abi::Metadata* metadata =
      reinterpret_cast<abi::MetadataExtension*>(frame->extension_start)->metadata;
  metadata->api_version.major = 0;
  metadata->api_version.minor = kMinor;
  metadata->state_type = state;
  return true;
}

int64_t Count(const abi::Buffer& b) {
  int64_t count = 1;
  for (int64_t k = 0; k < b.rank; ++k) count *= b.dims[k];
  return count;
}

abi::Error* Scaled(abi::CallFrame* frame, float by) {
  const auto* x = static_cast<const abi::Buffer*>(frame->args.args[0]);
  const auto* y = static_cast<const abi::Buffer*>(frame->rets.rets[0]);
  for (int64_t k = 0; k < Count(*x); ++k) {
    static_cast<float*>(y->data)[k] = by * static_cast<const float*>(x->data)[k];
  }
  return nullptr;
}

abi::Error* Twice(abi::CallFrame* frame) { return Answered(frame) ? nullptr : Scaled(frame, 2); }
[[maybe_unused]] abi::Error* Thrice(abi::CallFrame* frame) {
  return Answered(frame) ? nullptr : Scaled(frame, 3);
}

// All stages: instantiate leaves 1, prepare and initialize add 1 each where it is theirs to.
abi::Error* MakeState(abi::CallFrame* frame) {
  if (Answered(frame, state_type)) return nullptr;
  abi::StateArgs set = {{48, nullptr}, frame->ctx, frame->stage, &state_type, new float(1)};
  return frame->api->state_set(&set);
}
float* StateOf(abi::CallFrame* frame, abi::Stage stage) {
  abi::StateArgs get = {{48, nullptr}, frame->ctx, stage, &state_type, nullptr};
  return frame->api->state_get(&get) == nullptr ? static_cast<float*>(get.state) : nullptr;
}
abi::Error* ScaledByStates(abi::CallFrame* frame) {
  if (Answered(frame)) return nullptr;
  float sum = 0;
  for (abi::Stage s : {abi::Stage::kInstantiate, abi::Stage::kPrepare, abi::Stage::kInitialize}) {
    sum += *StateOf(frame, s);
  }
  return Scaled(frame, sum);
}

abi::ByteSpan Span(const char* text) { return {text, std::strlen(text)}; }

[[maybe_unused]] abi::Error* Register(const abi::Api* api, const char* name, const char* platform,
                                      abi::HandlerBundle bundle, size_t size = 92) {
  abi::HandlerRegisterArgs04 args = {{size, nullptr}, Span(name), Span(platform),
                                     bundle,          nullptr,    abi::kCommandBufferCompatible};
  return api->handler_register(reinterpret_cast<abi::HandlerRegisterArgs*>(&args));
}
// With the struct of the versions up to 0.3.
[[maybe_unused]] abi::Error* Register03(const abi::Api* api, const char* name, const char* platform,
                                        abi::HandlerBundle bundle) {
  abi::HandlerRegisterArgs args = {{84, nullptr}, Span(name), Span(platform), bundle, 0};
  return api->handler_register(&args);
}
// Types have one name each in a process.
#if defined(FIRST)
[[maybe_unused]] constexpr char kStateName[] = "self.first_state";
#elif defined(SECOND)
[[maybe_unused]] constexpr char kStateName[] = "self.second_state";
#else
[[maybe_unused]] constexpr char kStateName[] = "self.state";
#endif

[[maybe_unused]] constexpr abi::HandlerBundle kTwice = {nullptr, nullptr, nullptr, Twice};

int Start() {
  const abi::Api* const api = XLA_FFI_GetApi();
#if defined(NO_NAME)
  Register(api, "", "Host", kTwice);
#elif defined(NO_PLATFORM)
  Register(api, "self_twice", "", kTwice);
#elif defined(NO_EXECUTE)
  Register(api, "self_twice", "Host", {MakeState, nullptr, nullptr, nullptr});
#elif defined(SMALL_STRUCT)
  Register(api, "self_twice", "Host", kTwice, 40);
#elif defined(NULL_STRUCT)
  api->handler_register(nullptr);
#elif defined(OF_OTHER_VERSION)
  Register(api, "self_twice", "Host", kTwice);
#elif defined(TWO_OF_A_NAME)
  Register(api, "self_twice", "Host", kTwice);
  Register(api, "self_twice", "cpu", {nullptr, nullptr, nullptr, Thrice});
#elif defined(RIVAL)
  Register(api, "self_twice", "Host", {nullptr, nullptr, nullptr, Thrice});
#elif defined(NO_TYPE)
  Register(api, "self_states", "Host", {MakeState, MakeState, MakeState, ScaledByStates});
  state_type.id = 987654;
#elif defined(HANGS)  // for a while
  Register(api, "self_twice", "Host", kTwice);
  std::this_thread::sleep_for(std::chrono::seconds(1));
#elif defined(ON_A_THREAD)
  std::thread([api] { Register(api, "self_twice", "Host", kTwice); }).join();
#elif defined(ASKS_ON_A_THREAD)
  std::thread([] { Register(XLA_FFI_GetApi(), "self_twice", "Host", kTwice); }).join();
#elif defined(LATER)
  (void)api;
#elif defined(OWN_API_ON_A_THREAD)
  std::thread([] { Register(XLA_FFI_GetApi(), "self_twice", "Host", kTwice); }).join();
  Register03(api, "self_states", "Host", kTwice);
#elif defined(OWN_API)
  Register(api, "self_twice", "Host", kTwice);
  Register03(api, "self_states", "Host", kTwice);
#else
  // The handler stands before its type, which XLA would refuse.
  Register(api, "self_states", "Host", {MakeState, MakeState, MakeState, ScaledByStates});
  const abi::TypeInfo info = {24, nullptr, DeleteState};
  abi::TypeRegisterArgs type = {{40, nullptr}, Span(kStateName), &state_type, &info};
  if (api->type_register(&type) != nullptr) std::abort();
  // By the other name of the table, and the older struct.
  Register03(xla::ffi::GetXlaFfiApi(), "self_twice", "cpu", kTwice);
  Register(api, "self_twice", "Abacus", kTwice);
#endif
  return 0;
}
const int started = Start();

}  // namespace

// What a program may call when the library has long been loaded: 0 where it is refused.
extern "C" __attribute__((visibility("default"))) const char* register_later() {
  const abi::Api* const api = XLA_FFI_GetApi();
  abi::Error* const error = Register(api, "self_later", "Host", kTwice);
  if (error == nullptr) return nullptr;
  static char text[512];
  abi::ErrorGetMessageArgs get = {{36, nullptr}, error, nullptr, 0};
  api->error_get_message(&get);
  std::strncpy(text, get.message, sizeof(text) - 1);
  abi::ErrorDestroyArgs destroy = {{24, nullptr}, error};
  api->error_destroy(&destroy);
  return text;
}

#if defined(OWN_API) || defined(OWN_API_ON_A_THREAD)
// A library that brings its own runtime of the FFI, and exports it.
namespace {
int own_registrations = 0;
abi::Error* CountIt(abi::HandlerRegisterArgs*) {
  ++own_registrations;
  return nullptr;
}
}  // namespace
extern "C" __attribute__((visibility("default"))) const abi::Api* XLA_FFI_GetApi() {
  static const abi::Api api = [] {
    abi::Api made = {};
    made.handler_register = CountIt;
    return made;
  }();
  return &api;
}
extern "C" __attribute__((visibility("default"))) int OwnRegistrations() {
  return own_registrations;
}
#endif
