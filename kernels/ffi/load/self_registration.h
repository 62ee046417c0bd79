// SPDX-License-Identifier: Apache-2.0
// Handlers that libraries register in their start-up code, through the table of XLA_FFI_GetApi
// (ffi_api.h): XLA_FFI_REGISTER_HANDLER of XLA's headers. Registrations during the load of a
// library belong to that library, on any thread. At other times there is no library that they could
// belong to.
#ifndef SHARDCALL_KERNELS_FFI_LOAD_SELF_REGISTRATION_H_
#define SHARDCALL_KERNELS_FFI_LOAD_SELF_REGISTRATION_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/abi_table.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/kernels/ffi/load/library.h"

namespace shardcall {
inline namespace internal {

struct SelfRegistration {
  std::string target, platform;
  abi::HandlerBundle stages = {};
  abi::Traits traits = 0;
};

// The registrations of one library, in the order of its calls.
struct SelfRegistrations {
  std::vector<SelfRegistration> handlers;
  absl::Status fault;  // the first rejected call; XLA's macro ignores the error
  bool empty() const { return handlers.empty() && fault.ok(); }
};

// While it lives, this thread is loading the library of that path.
class LibraryLoad {
 public:
  explicit LibraryLoad(std::string path);
  LibraryLoad(const LibraryLoad&) = delete;
  LibraryLoad& operator=(const LibraryLoad&) = delete;
  ~LibraryLoad();
  // Gives the registrations made meanwhile to the library, whose `handle` from dlopen is never
  // closed. Waits for another thread that loads the same file and has run its start-up code.
  void Keep(void* handle);

 private:
  friend abi::Error* RegisterHandlerOfLibrary(abi::HandlerRegisterArgs* args);
  // Whether this load, on another thread, ran the start-up code of the library that `other` loads.
  bool RanStartUpCodeOf(const LibraryLoad& other) const;

  const std::string path_;
  std::pair<dev_t, ino_t> file_ = {};
  LibraryLoad* const before_;
  SelfRegistrations found_;
};

// Whether a library is being loaded on another thread, and none on this one.
bool LoadedByAnotherThread();

// The registrations of all loads of the library, since only the first load runs start-up code.
// Never null.
std::shared_ptr<const SelfRegistrations> SelfRegistrationsOf(void* handle);

// Whether the library registered a handler of that target in its start-up code.
bool RegistersItself(const Library& library, absl::string_view target);

// Registers all handlers of the library's start-up code. Returns its `fault`, and the errors of
// MakeTypedEntry and HandlerRegistry::Register.
absl::Status RegisterSelfRegistered(const std::shared_ptr<const Library>& library,
                                    HandlerRegistry* handlers);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_LOAD_SELF_REGISTRATION_H_
