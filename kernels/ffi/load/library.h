// SPDX-License-Identifier: Apache-2.0
// Shared libraries that bring handlers, loaded while the program runs. They
// stay for the life of the process: what they registered may be called at any
// time, and threads of theirs may run on.
#ifndef SHARDCALL_KERNELS_FFI_LOAD_LIBRARY_H_
#define SHARDCALL_KERNELS_FFI_LOAD_LIBRARY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shardcall/kernels/ffi/guard/timed_call.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall::inline internal {
struct SelfRegistrations;  // self_registration.h
}  // namespace shardcall::inline internal

namespace shardcall SHARDCALL_PUBLIC {

class Library {
 public:
  // All its symbols are bound at once, so that one that is missing shows here
  // and not in the middle of a run. E143 for a file that cannot be read, E142
  // for one that does not load: no library for this machine, or a library or a
  // symbol that it needs is not found. E319 where its start-up code does not return.
  static absl::StatusOr<std::shared_ptr<const Library>> Open(
      const std::string& path, absl::Duration deadline = kLoadDeadline);

  // Null if the library has no such symbol.
  void* Find(const std::string& symbol) const;
  // E145 if there is none, with the near ones that it exports.
  absl::StatusOr<void*> Get(const std::string& symbol) const;
  // Names of the functions and variables that it exports.
  std::vector<std::string> Exports() const;

  // What it registered itself, at this load of it or an earlier one.
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
