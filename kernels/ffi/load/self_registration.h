// SPDX-License-Identifier: Apache-2.0
// Handlers that libraries register themselves in their start-up code, with the table that
// XLA_FFI_GetApi gives (ffi_api.h): XLA_FFI_REGISTER_HANDLER of XLA's headers. What is
// registered while a library is loaded is that library's, on whichever thread; nobody is
// there to take what is registered at another time.
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

namespace shardcall::inline internal {

struct SelfRegistration {
  std::string target, platform;
  abi::HandlerBundle stages = {};
  abi::Traits traits = 0;
};

// Of one library, in the order of its calls.
struct SelfRegistrations {
  std::vector<SelfRegistration> handlers;
  absl::Status fault;  // the first call that was refused; XLA's macro does not look at it
  bool empty() const { return handlers.empty() && fault.ok(); }
};

// Handler_Register of every table. An error of the ABI: a struct that is too small, no name,
// no platform, no `execute`, and, with nothing that tells of it afterwards, a call while no
// library is loaded by Library::Open.
abi::Error* RegisterHandlerOfLibrary(abi::HandlerRegisterArgs* args);

// While it lives, this thread loads the library of that path.
class LibraryLoad {
 public:
  explicit LibraryLoad(std::string path);
  LibraryLoad(const LibraryLoad&) = delete;
  LibraryLoad& operator=(const LibraryLoad&) = delete;
  ~LibraryLoad();
  // What was registered meanwhile is the library's, whose `handle` of dlopen is never closed.
  // Waits for a load of the same file on another thread that has run its start-up code.
  void Keep(void* handle);

 private:
  friend abi::Error* RegisterHandlerOfLibrary(abi::HandlerRegisterArgs* args);
  // Whether this load, which is open on another thread, has what `other` is to share.
  bool RanStartUpCodeOf(const LibraryLoad& other) const;

  const std::string path_;
  std::pair<dev_t, ino_t> file_ = {};
  LibraryLoad* const before_;
  SelfRegistrations found_;
};

// Whether a library is being loaded on another thread, and none on this one.
bool LoadedByAnotherThread();

// Of all loads of the library, since only the first one runs start-up code. Never null.
std::shared_ptr<const SelfRegistrations> SelfRegistrationsOf(void* handle);

// Whether the library registered a handler of that target itself.
bool RegistersItself(const Library& library, absl::string_view target);

// Takes all that the library registered itself. Its fault, and what MakeTypedEntry and
// HandlerRegistry::Register say.
absl::Status RegisterSelfRegistered(const std::shared_ptr<const Library>& library,
                                    HandlerRegistry* handlers);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_FFI_LOAD_SELF_REGISTRATION_H_
