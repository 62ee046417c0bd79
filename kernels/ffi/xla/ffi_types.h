// SPDX-License-Identifier: Apache-2.0
// Type ids of the typed FFI: numbers by which handlers identify their state and their user data. A
// library keeps the number in its own variable, so there is one registry per process: ids of two
// libraries must differ.
#ifndef SHARDCALL_KERNELS_FFI_XLA_FFI_TYPES_H_
#define SHARDCALL_KERNELS_FFI_XLA_FFI_TYPES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

using FfiDeleter = void (*)(void* object);

// Registers `name` and returns its id. `id` is the requested one, 0 for any. `deleter` may be null
// (user data, which the runtime does not own). Registering the name again returns the same id;
// E141 if the deleter differs. E141 also for an empty name, for an id that another name has, and
// for an id other than that of this name.
absl::StatusOr<int64_t> RegisterFfiType(absl::string_view name, int64_t id, FfiDeleter deleter);

struct FfiType {
  std::string name;
  FfiDeleter deleter = nullptr;
};
// Null for an unknown id. Types are never removed.
const FfiType* FindFfiType(int64_t id);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_XLA_FFI_TYPES_H_
