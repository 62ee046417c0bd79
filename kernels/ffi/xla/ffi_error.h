// SPDX-License-Identifier: Apache-2.0
// Errors of the typed FFI. Handlers hold a number instead of a pointer, and all existing errors
// are registered: the value that a handler returns is looked up, never dereferenced.
#ifndef SHARDCALL_KERNELS_FFI_XLA_FFI_ERROR_H_
#define SHARDCALL_KERNELS_FFI_XLA_FFI_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/abi.h"

namespace shardcall::abi {
struct Error {
  absl::StatusCode code;
  std::string message;
};
}  // namespace shardcall::abi

namespace shardcall {
inline namespace internal {

// The handle of a new error. OK, or an invalid code, counts as unknown (2).
abi::Error* NewFfiError(int code, absl::string_view message);
inline abi::Error* NewFfiError(absl::StatusCode code, absl::string_view message) {
  return NewFfiError(static_cast<int>(code), message);
}

// Null if `error` is not an existing error.
const abi::Error* FindFfiError(const void* error);
// Destroys the error; false, without effect, if it does not exist.
bool DestroyFfiError(const void* error);

// Destroys the error and returns it as a status with its code and message. OK for null; kDataLoss
// without a message if the error does not exist.
absl::Status TakeFfiError(const void* error);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_XLA_FFI_ERROR_H_
