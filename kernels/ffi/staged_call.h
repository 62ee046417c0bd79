// SPDX-License-Identifier: Apache-2.0
// Calls of handlers that are written for an accelerator, from programs whose
// values lie in host memory: operands are copied to the device, the handler gets
// device pointers and the stream, the stream is awaited, results are copied back.
#ifndef SHARDCALL_KERNELS_FFI_STAGED_CALL_H_
#define SHARDCALL_KERNELS_FFI_STAGED_CALL_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/kernels/ffi/handler_device.h"

namespace shardcall {

// Operands and results are host memory; a result that is an operand's memory is
// one buffer on the device too. Computations that the call carries run on the host,
// staged the other way. Errors: the handler's; E309 where the device fails, E319
// where the stream is not idle context.deadline after the handler returned. Both
// name target and instruction.
absl::Status CallStaged(const HandlerEntry& entry, const std::shared_ptr<HandlerDevice>& device,
                        HandlerContext context, absl::Span<const BufferView> operands,
                        absl::Span<const BufferView> results);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_STAGED_CALL_H_
