// SPDX-License-Identifier: Apache-2.0
// One thread per element of the result, so that adjacent threads read a row of b together.
#include <cuda_runtime.h>

#include <algorithm>

#include "shardcall/kernels/cuda/launch.h"
#include "shardcall/kernels/cuda/sparse_element.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 1 << 16;

int BlocksOf(int64_t n) {
  return static_cast<int>(std::min((n + kThreads - 1) / kThreads, kMostBlocks));
}

template <typename T>
__global__ void SparseMatmul(SparseLaunch l) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x, elements = l.m * l.n;
  for (int64_t e = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; e < elements; e += stride) {
    cuda::SparseElement<T>(l, e / l.n, e % l.n);
  }
}

__global__ void SparseCheck(SparseLaunch l, SparseStructure* structure, int32_t* shifted) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  const int64_t start = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (int64_t i = start; i <= l.m || i < l.z; i += stride) {
    if (i <= l.m) shifted[i] = cuda::ShiftedOffset(l, i);
    if (cuda::IrregularAt(l, i)) structure->irregular = 1;  // a race between equal writes
  }
  if (start == 0) {
    structure->first = l.offsets[0];
    structure->last = l.offsets[l.m];
  }
}

}  // namespace

int LaunchSparseMatmul(const SparseLaunch& launch, void* stream) {
  cuda::WithSparseType(launch.type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    SparseMatmul<T>
        <<<BlocksOf(launch.m * launch.n), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(launch);
  });
  return cudaGetLastError();
}

int LaunchSparseCheck(const SparseLaunch& launch, SparseStructure* structure, int32_t* shifted,
                      void* stream) {
  SparseCheck<<<BlocksOf(std::max(launch.m + 1, launch.z)), kThreads, 0,
                static_cast<cudaStream_t>(stream)>>>(launch, structure, shifted);
  return cudaGetLastError();
}

}  // namespace internal
}  // namespace shardcall
