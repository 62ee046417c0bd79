// SPDX-License-Identifier: Apache-2.0
// Type ids of the typed FFI: numbers that handlers know their state and their
// user data by. A library keeps the number in a variable of its own, so the
// registry is one for the process: ids of two libraries must differ.
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

// Registers `name` and returns its id. `id` is the one it asks for, 0 for any.
// `deleter` may be null (user data, which the runtime does not own). The same
// name again gives the same id, and with another deleter E141. E141 too for an
// empty name, and for an id that another name has or that this name does not.
absl::StatusOr<int64_t> RegisterFfiType(absl::string_view name, int64_t id, FfiDeleter deleter);

struct FfiType {
  std::string name;
  FfiDeleter deleter = nullptr;
};
// Null if there is none. Types are never taken back.
const FfiType* FindFfiType(int64_t id);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_XLA_FFI_TYPES_H_
