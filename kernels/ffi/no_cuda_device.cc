// SPDX-License-Identifier: Apache-2.0
// Replaces cuda_device.cc in a build without the CUDA toolkit.
#include "shardcall/kernels/ffi/cuda_device.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::StatusOr<std::shared_ptr<HandlerDevice>> OpenCudaDevice(int, void*) {
  return ToStatus({.code = "E303",
                   .message = "handlers for CUDA cannot be called: this build of shardcall is "
                              "without CUDA",
                   .fix = "Build it where the CUDA toolkit is, or register a handler for Host"},
                  absl::StatusCode::kUnavailable);
}

bool CudaIsInUse() { return false; }

}  // namespace internal
}  // namespace shardcall
