// SPDX-License-Identifier: Apache-2.0
// Shared by the implementation of the C interface: errors and texts, argument checks, and a
// barrier for exceptions.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_C_C_INTERNAL_H_
#define SHARDCALL_PARTITIONER_BINDINGS_C_C_INTERNAL_H_

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/c/shardcall_c.h"
#include "shardcall/partitioner/bindings/xla/registration.h"

struct Shardcall_Text {
  std::string text;
};

struct Shardcall_Registry {
  shardcall::SharedRegistry registry;
};

namespace shardcall {
inline namespace internal {

// Null for OK.
Shardcall_Error* ToError(const absl::Status& status);

// E148: an argument of a C function that is null, of another version, and so on.
absl::Status BadArgument(absl::string_view function, std::string expected, std::string found);

// The status of the current exception: E314 for lack of memory, else E121, since only functions of
// the caller throw. `who` was being called.
absl::Status ThrownStatus(absl::string_view who);

// Runs `body`, which returns absl::Status; its exceptions become errors.
template <typename Body>
Shardcall_Error* Guarded(absl::string_view function, Body&& body) {
  absl::Status status;
  try {
    status = body();
  } catch (...) {
    status = ThrownStatus(function);
  }
  return ToError(status);
}

inline absl::Status NotNull(absl::string_view function, absl::string_view name, const void* p) {
  return p != nullptr ? absl::OkStatus() : BadArgument(function, std::string(name), "null");
}

// Reads a struct of any minor version of this major one; fields that it is too short for are zero.
// `first_size` is the size in the first version.
template <typename T>
absl::Status ReadStruct(absl::string_view function, const T* from, size_t first_size, T* to) {
  if (from == nullptr) return BadArgument(function, "a struct", "null");
  const size_t size = from->struct_size;
  if (size < first_size || size > 65536) {
    return BadArgument(
        function, absl::StrCat("a struct_size of ", first_size, " or more, as SHARDCALL_INIT sets"),
        absl::StrCat(size));
  }
  *to = {};
  std::memcpy(to, from, std::min(size, sizeof(T)));
  to->struct_size = sizeof(T);
  return absl::OkStatus();
}

// The status of a callback that returned `code`, not 0, of absl::StatusCode, with the callback's
// message.
inline absl::Status StatusOfC(int code, absl::string_view message) {
  const bool known = code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                      message.empty() ? absl::StrCat("it returned ", code) : message);
}

// The registry that a C function refers to; null is that of the process.
inline SharedRegistry& RegistryOf(Shardcall_Registry* registry) {
  return registry == nullptr ? ProcessRegistry() : registry->registry;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_C_C_INTERNAL_H_
