// SPDX-License-Identifier: Apache-2.0
// The shipped targets with a kernel for CUDA. They have the same contracts as on the host
// (kernels/host/kernels.h), with buffers in device memory and work on the stream of context.device.
// Replaced by no_kernels.cc in a build without nvcc.
#ifndef SHARDCALL_KERNELS_CUDA_KERNELS_H_
#define SHARDCALL_KERNELS_CUDA_KERNELS_H_

#include <string>
#include <utility>
#include <vector>

#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

// By target; empty without CUDA.
std::vector<std::pair<std::string, HostHandler>> CudaKernels();

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_CUDA_KERNELS_H_
