// SPDX-License-Identifier: Apache-2.0
// cublas_gemm by cuBLASLt. Replaced by no_cublas_gemm.cc if the toolkit has no cuBLASLt.
#ifndef SHARDCALL_KERNELS_CUDA_CUBLAS_GEMM_H_
#define SHARDCALL_KERNELS_CUDA_CUBLAS_GEMM_H_

#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

// Null without cuBLASLt.
HostHandler CudaGemm();

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_CUDA_CUBLAS_GEMM_H_
