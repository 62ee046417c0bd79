// SPDX-License-Identifier: Apache-2.0
// Errors of the typed FFI. Handlers hold a number in place of a pointer, and
// every live one is known: what a handler returns is looked up, never followed.
#ifndef SHARDCALL_KERNELS_FFI_XLA_FFI_ERROR_H_
#define SHARDCALL_KERNELS_FFI_XLA_FFI_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/abi.h"

namespace shardcall {

namespace abi {
struct Error {
  absl::StatusCode code;
  std::string message;
};
}  // namespace abi

// The handle of a live error. A code that is none, or OK, counts as unknown (2).
abi::Error* NewFfiError(int code, absl::string_view message);
inline abi::Error* NewFfiError(absl::StatusCode code, absl::string_view message) {
  return NewFfiError(static_cast<int>(code), message);
}

// Null if `error` is no live one.
const abi::Error* FindFfiError(const void* error);
// Ends its life; false, and nothing done, if it is no live one.
bool DestroyFfiError(const void* error);

// The error as a status with its code and its message alone, and ends its life.
// For null OK; for what is no live error kDataLoss, with no message.
absl::Status TakeFfiError(const void* error);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_XLA_FFI_ERROR_H_
