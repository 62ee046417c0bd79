// SPDX-License-Identifier: Apache-2.0
// Calls of accelerator handlers from programs whose values are in host memory: copies operands to
// the device, calls the handler with device pointers and the stream, waits for the stream, and
// copies results back.
#ifndef SHARDCALL_KERNELS_FFI_STAGED_CALL_H_
#define SHARDCALL_KERNELS_FFI_STAGED_CALL_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/kernels/ffi/handler_device.h"

namespace shardcall {
inline namespace internal {

// Operands and results are host memory; a result that shares an operand's memory does so on the
// device too. Computations that the call carries run on the host, with their operands copied
// there. Errors: the handler's; E309 if the device fails; E319 if the stream is not idle
// context.deadline after the handler returned. The latter two name target and instruction.
absl::Status CallStaged(const HandlerEntry& entry, const std::shared_ptr<HandlerDevice>& device,
                        HandlerContext context, absl::Span<const BufferView> operands,
                        absl::Span<const BufferView> results);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_STAGED_CALL_H_
