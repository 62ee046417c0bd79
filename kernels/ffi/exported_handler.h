// SPDX-License-Identifier: Apache-2.0
// Makes handlers of a HandlerRegistry callable by another runtime of XLA's typed FFI, the opposite
// of typed_handler.h. A call frame does not name its target, so each target gets its own function
// out of a fixed number of them.
#ifndef SHARDCALL_KERNELS_FFI_EXPORTED_HANDLER_H_
#define SHARDCALL_KERNELS_FFI_EXPORTED_HANDLER_H_

#include <string>

#include "absl/status/statusor.h"
#include "shardcall/kernels/ffi/abi.h"
#include "shardcall/kernels/ffi/handler.h"

namespace shardcall::inline internal {

// Information for the handler that a call frame lacks. The handler has no communicator, and no
// state between calls.
struct ExportedCall {
  int num_devices = 1;
  int api_version = 4;         // of the call; below 4 its attributes are plain text
  std::string backend_config;  // as text, which a frame lacks
};
struct ExportedFunction {
  abi::Handler* function;
  int number;  // of this function among all
};

// The function for a target, platform, API version and text. It exists until the process ends,
// because it is unknown when the other runtime stops using it. It calls the entry that was
// exported last. kResourceExhausted (E140) when all functions are in use.
//
// It accepts frames of every version up to 0.5, and declares version 0.1. What a handler throws
// becomes an error of its call, like an error that it returns.
absl::StatusOr<ExportedFunction> ExportHandler(const HandlerEntry& entry, const ExportedCall& call);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_FFI_EXPORTED_HANDLER_H_
