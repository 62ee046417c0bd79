// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>

#include "shardcall/kernels/cuda/launch.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 1 << 16;

template <typename T>
__global__ void Relu(const T* x, T* y, int64_t n) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
    const T v = x[i];
    y[i] = v <= T(0) ? T(0) : v;
  }
}

// f16 and bf16 by their bits: a value with a sign bit becomes zero, unless it is NaN.
__global__ void ReluBits(const uint16_t* x, uint16_t* y, int64_t n, uint16_t infinity) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) {
    const uint16_t v = x[i];
    y[i] = (v & 0x8000) != 0 && (v & 0x7fff) <= infinity ? 0 : v;
  }
}

template <typename T>
void Run(const void* x, void* y, int64_t n, int blocks, cudaStream_t stream) {
  Relu<<<blocks, kThreads, 0, stream>>>(static_cast<const T*>(x), static_cast<T*>(y), n);
}

}  // namespace

int LaunchRelu(CudaType type, const void* x, void* y, int64_t n, void* stream) {
  if (n == 0) return cudaSuccess;
  const int blocks = static_cast<int>(std::min((n + kThreads - 1) / kThreads, kMostBlocks));
  const auto s = static_cast<cudaStream_t>(stream);
  const auto bits = [&](uint16_t infinity) {
    ReluBits<<<blocks, kThreads, 0, s>>>(static_cast<const uint16_t*>(x), static_cast<uint16_t*>(y),
                                         n, infinity);
  };
  switch (type) {
    case CudaType::kF32: Run<float>(x, y, n, blocks, s); break;
    case CudaType::kF64: Run<double>(x, y, n, blocks, s); break;
    case CudaType::kF16: bits(0x7c00); break;
    case CudaType::kBF16: bits(0x7f80); break;
    case CudaType::kS8: Run<int8_t>(x, y, n, blocks, s); break;
    case CudaType::kS16: Run<int16_t>(x, y, n, blocks, s); break;
    case CudaType::kS32: Run<int32_t>(x, y, n, blocks, s); break;
    case CudaType::kS64: Run<int64_t>(x, y, n, blocks, s); break;
    default: return cudaErrorInvalidValue;
  }
  return cudaGetLastError();
}

const char* CudaErrorText(int code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); }

}  // namespace internal
}  // namespace shardcall
