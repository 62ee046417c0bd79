// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/cuda/sparse_matmul.h"

namespace shardcall {

HostHandler CudaSparseMatmul() { return nullptr; }

}  // namespace shardcall
