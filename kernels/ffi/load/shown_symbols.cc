// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/load/shown_symbols.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/load/ffi_api.h"
#include "shardcall/kernels/ffi/untyped_handler.h"
#include "shardcall/kernels/ffi/xla/ffi_symbols.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr unsigned char kLibrary[] = {
#include "ffi_symbols.inc"
};

bool Show() {
  const int file = memfd_create("shardcall_ffi_symbols", MFD_CLOEXEC);
  if (file < 0) return false;
  void* library = nullptr;
  if (write(file, kLibrary, sizeof(kLibrary)) == static_cast<ssize_t>(sizeof(kLibrary))) {
    library = dlopen(absl::StrCat("/proc/self/fd/", file).c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
  close(file);
  if (library == nullptr) return false;
  static constexpr Shardcall_FfiSymbols kSymbols = {
      FfiApiFor,
      [](void* status) {
        XlaCustomCallStatusSetSuccess(static_cast<XlaCustomCallStatus*>(status));
      },
      [](void* status, const char* message, size_t message_len) {
        XlaCustomCallStatusSetFailure(static_cast<XlaCustomCallStatus*>(status), message,
                                      message_len);
      }};
  const auto use = reinterpret_cast<void (*)(const Shardcall_FfiSymbols*)>(
      dlsym(library, "shardcall_use_ffi_symbols"));
  if (use == nullptr) return false;
  use(&kSymbols);
  return true;
}

}  // namespace

bool IsFfiSymbol(absl::string_view symbol) {
  return symbol == kGetApiSymbol || symbol == kGetXlaFfiApiSymbol ||
         symbol == "XlaCustomCallStatusSetSuccess" || symbol == "XlaCustomCallStatusSetFailure";
}

bool ShowFfiSymbols() {
  static const bool shown = Show();
  return shown;
}

}  // namespace internal
}  // namespace shardcall
