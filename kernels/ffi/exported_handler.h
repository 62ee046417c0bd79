// SPDX-License-Identifier: Apache-2.0
// Handlers of ours for another runtime of XLA's typed FFI to call: the other direction
// of typed_handler.h. A frame does not name its target, so each target is given a
// function of its own out of a fixed number of them.
#ifndef SHARDCALL_KERNELS_FFI_EXPORTED_HANDLER_H_
#define SHARDCALL_KERNELS_FFI_EXPORTED_HANDLER_H_

#include <string>

#include "absl/status/statusor.h"
#include "shardcall/kernels/ffi/abi.h"
#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {

// What a handler is told beside what stands in the frame. It has no communicator, and no
// state between calls.
struct ExportedCall {
  int num_devices = 1;
  int api_version = 4;         // of the call; below 4 its attributes are its text
  std::string backend_config;  // as text, which a frame does not have
};
struct ExportedFunction {
  abi::Handler* function;
  int number;  // of this function among all
};

// The function of a target and platform, API version and text: one for as long as the
// process is there, since nobody says when the other runtime lets go of it. It calls the
// entry that was exported last. kResourceExhausted (E140) where all functions are taken.
//
// Frames of every version up to 0.5 are taken; the functions say that they are of 0.1.
// What a handler throws is an error of its call, as what it returns.
absl::StatusOr<ExportedFunction> ExportHandler(const HandlerEntry& entry, const ExportedCall& call);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_EXPORTED_HANDLER_H_
