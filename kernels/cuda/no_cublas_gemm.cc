// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/cuda/cublas_gemm.h"

namespace shardcall::inline internal {

HostHandler CudaGemm() { return nullptr; }

}  // namespace shardcall::inline internal
