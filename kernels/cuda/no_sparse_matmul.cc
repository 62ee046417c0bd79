// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/cuda/sparse_matmul.h"

namespace shardcall {
inline namespace internal {

HostHandler CudaSparseMatmul() { return nullptr; }

}  // namespace internal
}  // namespace shardcall
