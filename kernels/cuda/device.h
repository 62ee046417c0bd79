// SPDX-License-Identifier: Apache-2.0
// A GPU behind HandlerDevice. device.cc in a build with the CUDA toolkit, else
// no_device.cc.
#ifndef SHARDCALL_KERNELS_CUDA_DEVICE_H_
#define SHARDCALL_KERNELS_CUDA_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "shardcall/kernels/ffi/handler_device.h"

namespace shardcall::inline internal {

// The GPU `ordinal` modulo their number, with a stream of its own; or, with a
// `stream`, that stream's GPU, whichever one is current on this thread.
// E303 (kUnavailable) without a GPU or the toolkit, E309 where CUDA fails.
absl::StatusOr<std::shared_ptr<HandlerDevice>> OpenCudaDevice(int ordinal, void* stream);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_CUDA_DEVICE_H_
