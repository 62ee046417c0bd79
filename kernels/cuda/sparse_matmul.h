// SPDX-License-Identifier: Apache-2.0
// sparse_matmul by cuSPARSE, or by our own kernel for inputs that cuSPARSE does not support.
// Replaced by no_sparse_matmul.cc if the toolkit has no cuSPARSE.
#ifndef SHARDCALL_KERNELS_CUDA_SPARSE_MATMUL_H_
#define SHARDCALL_KERNELS_CUDA_SPARSE_MATMUL_H_

#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

// Null without cuSPARSE.
HostHandler CudaSparseMatmul();

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_CUDA_SPARSE_MATMUL_H_
