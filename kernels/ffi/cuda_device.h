// SPDX-License-Identifier: Apache-2.0
// A GPU as a HandlerDevice. cuda_device.cc is for builds with the CUDA toolkit,
// no_cuda_device.cc for others.
#ifndef SHARDCALL_KERNELS_FFI_CUDA_DEVICE_H_
#define SHARDCALL_KERNELS_FFI_CUDA_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "shardcall/kernels/ffi/handler_device.h"

namespace shardcall {
inline namespace internal {

// The GPU `ordinal` modulo the number of GPUs, with a stream of its own; or, given a `stream`, the
// GPU of that stream, even if another one is current on this thread. E303 (kUnavailable) without a
// GPU or the toolkit, E309 if CUDA fails.
absl::StatusOr<std::shared_ptr<HandlerDevice>> OpenCudaDevice(int ordinal, void* stream);

// Whether something in this process uses CUDA, which then fails in its forks.
bool CudaIsInUse();

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_CUDA_DEVICE_H_
