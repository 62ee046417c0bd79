// SPDX-License-Identifier: Apache-2.0
// One block per row: it sums the squares in f64, then reads the row again.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "shardcall/kernels/cuda/launch.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int kThreads = 256, kWarp = 32;
constexpr int64_t kMostBlocks = 1 << 16;

// The type in which T is computed.
template <typename T>
struct Wide {
  using Type = float;
};
template <>
struct Wide<double> {
  using Type = double;
};

__device__ float Load(float v) { return v; }
__device__ double Load(double v) { return v; }
__device__ float Load(__half v) { return __half2float(v); }
__device__ float Load(__nv_bfloat16 v) { return __bfloat162float(v); }
__device__ void Store(float v, float* to) { *to = v; }
__device__ void Store(double v, double* to) { *to = v; }
__device__ void Store(float v, double* to) { *to = v; }
__device__ void Store(double v, float* to) { *to = static_cast<float>(v); }
__device__ void Store(float v, __half* to) { *to = __float2half_rn(v); }
__device__ void Store(float v, __nv_bfloat16* to) { *to = __float2bfloat16_rn(v); }

// The sum over the block, returned on every thread.
__device__ double BlockSum(double v) {
  __shared__ double warps[kThreads / kWarp];
  for (int k = kWarp / 2; k > 0; k /= 2) v += __shfl_xor_sync(~0u, v, k);
  __syncthreads();  // until all threads have read the sums of the previous row
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = v;
  __syncthreads();
  double sum = 0;
  for (double w : warps) sum += w;
  return sum;
}

template <typename T, typename Gain, typename Rstd>
__global__ void RmsNorm(const T* x, const Gain* gain, T* y, Rstd* rstd, int64_t rows, int64_t width,
                        int64_t rows_per_gain, double eps) {
  using W = typename Wide<T>::Type;
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const T* row = x + r * width;
    const Gain* scale = gain + r / rows_per_gain * width;
    double squares = 0;
    for (int64_t i = threadIdx.x; i < width; i += kThreads) {
      const double v = Load(row[i]);
      squares += v * v;
    }
    const double mean = BlockSum(squares) / static_cast<double>(width);
    const W inverse = static_cast<W>(1 / sqrt(mean + eps));
    for (int64_t i = threadIdx.x; i < width; i += kThreads) {
      T rounded;  // to T before the gain, like the unfused form
      Store(static_cast<W>(Load(row[i])) * inverse, &rounded);
      Store(static_cast<W>(Load(rounded)) * static_cast<W>(Load(scale[i])), &y[r * width + i]);
    }
    if (rstd != nullptr && threadIdx.x == 0) Store(inverse, &rstd[r]);
  }
}

template <typename T, typename Gain, typename Rstd>
void Run(const RmsNormLaunch& l, cudaStream_t stream) {
  const int blocks = static_cast<int>(std::min(l.rows, kMostBlocks));
  RmsNorm<<<blocks, kThreads, 0, stream>>>(
      static_cast<const T*>(l.x), static_cast<const Gain*>(l.gain), static_cast<T*>(l.y),
      static_cast<Rstd*>(l.rstd), l.rows, l.width, l.rows_per_gain, l.eps);
}
template <typename T>
void RunNarrow(const RmsNormLaunch& l, cudaStream_t stream) {
  l.gain_type == CudaType::kF32 ? Run<T, float, float>(l, stream) : Run<T, T, float>(l, stream);
}

}  // namespace

int LaunchRmsNorm(const RmsNormLaunch& l, void* stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  switch (l.type) {
    case CudaType::kF64:
      l.rstd_type == CudaType::kF64 ? Run<double, double, double>(l, s)
                                    : Run<double, double, float>(l, s);
      break;
    case CudaType::kF16: RunNarrow<__half>(l, s); break;
    case CudaType::kBF16: RunNarrow<__nv_bfloat16>(l, s); break;
    default: Run<float, float, float>(l, s);
  }
  return cudaGetLastError();
}

}  // namespace internal
}  // namespace shardcall
