// SPDX-License-Identifier: Apache-2.0
// libshardcall_pjrt.so, which needs only the C and C++ libraries. It loads the plugin from the same
// folder, so that the plugin uses the Abseil and protobuf that it was built with. Otherwise the
// dynamic loader would take the copies that a package such as TensorFlow exports to the whole
// process (RTLD_GLOBAL).
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "shardcall/partitioner/bindings/pjrt_wrapper/refusing_table.h"
#include "shardcall/partitioner/bindings/xla/pjrt_abi.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

constexpr char kWhole[] = "libshardcall_pjrt_whole.so";

// Whether another definition of `symbol` precedes the one in `library`.
bool IsReplaced(const char* symbol, const char* library) {
  void* const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return loaded == nullptr || dlsym(loaded, symbol) != dlsym(RTLD_DEFAULT, symbol);
}

int Mode() {
#ifdef RTLD_DEEPBIND
  // With RTLD_DEEPBIND, the plugin searches its own libraries before the process, including the C
  // library. If another allocator precedes the C library, memory from one would be freed by the
  // other.
  if (!IsReplaced("malloc", "libc.so.6") && !IsReplaced("_Znwm", "libstdc++.so.6")) {
    return RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
  }
#endif
  return RTLD_NOW | RTLD_LOCAL;
}

// The path of the plugin beside this library, with symlinks resolved.
std::string WholePath() {
  Dl_info info;
  char path[PATH_MAX];
  if (dladdr(reinterpret_cast<void*>(&WholePath), &info) == 0 ||
      realpath(info.dli_fname, path) == nullptr) {
    return kWhole;
  }
  const std::string here = path;
  return here.substr(0, here.rfind('/') + 1) + kWhole;
}

// Why the plugin could not be loaded; the only PJRT_Error of this library.
std::string& Why() {
  static std::string* const why = new std::string;
  return *why;
}

const abi::Error* Refuse(void*) { return reinterpret_cast<const abi::Error*>(&Why()); }
void ErrorDestroy(abi::ErrorArgs*) {}
void ErrorMessage(abi::ErrorMessageArgs* args) {
  args->message = Why().data();
  args->message_size = Why().size();
}
const abi::Error* ErrorGetCode(abi::ErrorCodeArgs* args) {
  args->code = 5;  // absl::StatusCode::kNotFound
  return nullptr;
}

const void* Refusing(const char* reason) {
  Why() = std::string("E143 the library of this PJRT plugin cannot be loaded: found ") +
          (reason == nullptr ? "no reason of the loader's" : reason) + ". Fix: keep " + kWhole +
          " beside libshardcall_pjrt.so, and install the libraries that it needs";
  static auto* const table =
      new std::vector<char>(RefusingTable(reinterpret_cast<const void*>(&Refuse)));
  const auto set = [](abi::Function place, const void* function) {
    SetFunction(*table, static_cast<int>(place), function);
  };
  set(abi::Function::kErrorDestroy, reinterpret_cast<const void*>(&ErrorDestroy));
  set(abi::Function::kErrorMessage, reinterpret_cast<const void*>(&ErrorMessage));
  set(abi::Function::kErrorGetCode, reinterpret_cast<const void*>(&ErrorGetCode));
  return table->data();
}

using Entry = const void* (*)();

Entry Load() {
  void* const plugin = dlopen(WholePath().c_str(), Mode());
  return plugin == nullptr ? nullptr : reinterpret_cast<Entry>(dlsym(plugin, "GetPjrtApi"));
}

}  // namespace
}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

extern "C" const void* GetPjrtApi() {
  using shardcall::pjrt::Load;
  using shardcall::pjrt::Refusing;
  static const auto entry = Load();
  static const void* const refusing = entry == nullptr ? Refusing(dlerror()) : nullptr;
  return entry == nullptr ? refusing : entry();
}
