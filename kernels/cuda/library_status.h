// SPDX-License-Identifier: Apache-2.0
// Errors of CUDA and its libraries as statuses: E309, without the call's place.
#ifndef SHARDCALL_KERNELS_CUDA_LIBRARY_STATUS_H_
#define SHARDCALL_KERNELS_CUDA_LIBRARY_STATUS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {

// "cuBLASLt failed in cublasLtMatmul: out of memory (3)".
absl::Status LibraryStatus(absl::string_view library, absl::string_view function,
                           absl::string_view text, int code, bool out_of_memory,
                           absl::string_view fix);

// OK, or the error, which is cleared if it can be cleared.
absl::Status RuntimeStatus(cudaError_t code, absl::string_view function);

// E309 for a status of HandlerDevice, which has no code of its own.
absl::Status DeviceStatus(const absl::Status& status);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_CUDA_LIBRARY_STATUS_H_
