// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/cuda/cublas_gemm.h"

namespace shardcall {
inline namespace internal {

HostHandler CudaGemm() { return nullptr; }

}  // namespace internal
}  // namespace shardcall
