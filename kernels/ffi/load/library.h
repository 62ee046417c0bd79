// SPDX-License-Identifier: Apache-2.0
// Shared libraries with handlers, loaded at run time. They are never unloaded: the handlers that
// they registered may be called at any time, and their threads may still run.
#ifndef SHARDCALL_KERNELS_FFI_LOAD_LIBRARY_H_
#define SHARDCALL_KERNELS_FFI_LOAD_LIBRARY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shardcall/kernels/ffi/timed_call.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall {
inline namespace internal {
struct SelfRegistrations;  // self_registration.h
}  // namespace internal
}  // namespace shardcall

namespace shardcall SHARDCALL_PUBLIC {

class Library {
 public:
  // Binds all symbols at once, so that a missing one is reported here and not during a run. E143 if
  // the file cannot be read. E142 if it does not load: built for another machine, or a library or
  // symbol that it needs is missing. E319 if its start-up code does not return.
  static absl::StatusOr<std::shared_ptr<const Library>> Open(
      const std::string& path, absl::Duration deadline = kLoadDeadline);

  // Null if the library has no such symbol.
  void* Find(const std::string& symbol) const;
  // E145 if there is none, with similar names that it exports.
  absl::StatusOr<void*> Get(const std::string& symbol) const;
  // Names of the functions and variables that it exports.
  std::vector<std::string> Exports() const;

  // The handlers that it registered in its start-up code, at this load or an earlier one.
  const SelfRegistrations& registered() const { return *registered_; }

  const std::string& path() const { return path_; }

 private:
  Library(std::string path, void* handle);

  std::string path_;
  void* handle_;
  std::shared_ptr<const SelfRegistrations> registered_;
};

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_LOAD_LIBRARY_H_
