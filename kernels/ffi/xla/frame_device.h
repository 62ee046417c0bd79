// SPDX-License-Identifier: Apache-2.0
// The accelerator of another runtime that calls a handler of ours: the stream and the memory that
// its call frame gives.
#ifndef SHARDCALL_KERNELS_FFI_XLA_FRAME_DEVICE_H_
#define SHARDCALL_KERNELS_FFI_XLA_FRAME_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "shardcall/kernels/ffi/abi.h"
#include "shardcall/kernels/ffi/handler_device.h"

namespace shardcall {
inline namespace internal {

// Whether the runtime has done what it was asked through the frame's table. Destroys the error.
bool Done(const abi::CallFrame& frame, abi::Error* error);

// The device of a call, for `platform`, whose devices `opener` opens. Destroy it when the handler
// has returned: memory of the frame goes back then, which the runtime reuses in the order of the
// stream. What handlers keep() stays for the stream's later calls. E312 if the frame has no stream,
// else what the opener returns.
absl::StatusOr<std::shared_ptr<HandlerDevice>> DeviceOfFrame(const abi::CallFrame& frame,
                                                             const std::string& platform,
                                                             const HandlerDeviceOpener& opener);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_XLA_FRAME_DEVICE_H_
