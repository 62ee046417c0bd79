// SPDX-License-Identifier: Apache-2.0
// row_softmax: y[r, c] = exp(s x[r, c]) / sum over k of exp(s x[r, k]), as handlers of
// XLA's typed FFI for CUDA and for the host. Nothing here is shardcall's.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

using Matrix = ffi::BufferR2<ffi::F32>;

constexpr int kThreads = 256;

// The largest, or the sum, of a value of each thread of the block, on all of them.
template <typename Combine>
__device__ float OfBlock(float v, Combine combine) {
  __shared__ float values[kThreads];
  __syncthreads();  // what stands there was read
  values[threadIdx.x] = v;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      values[threadIdx.x] = combine(values[threadIdx.x], values[threadIdx.x + half]);
    }
  }
  __syncthreads();
  return values[0];
}

__global__ void RowSoftmaxKernel(const float* x, float* y, int64_t rows, int64_t columns,
                                 float scale) {
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const float* const in = x + r * columns;
    float* const out = y + r * columns;
    float largest = -INFINITY, sum = 0;
    for (int64_t c = threadIdx.x; c < columns; c += kThreads) {
      largest = fmaxf(largest, scale * in[c]);
    }
    largest = OfBlock(largest, [](float a, float b) { return fmaxf(a, b); });
    for (int64_t c = threadIdx.x; c < columns; c += kThreads) sum += expf(scale * in[c] - largest);
    sum = OfBlock(sum, [](float a, float b) { return a + b; });
    for (int64_t c = threadIdx.x; c < columns; c += kThreads) {
      out[c] = expf(scale * in[c] - largest) / sum;
    }
  }
}

// Work goes on the stream that the call brings, and is not awaited.
ffi::Error RowSoftmaxCuda(cudaStream_t stream, Matrix x, ffi::Result<Matrix> y, float scale) {
  const int64_t rows = x.dimensions()[0], columns = x.dimensions()[1];
  if (rows == 0 || columns == 0) return ffi::Error::Success();
  const int blocks = static_cast<int>(std::min<int64_t>(rows, 65535));
  RowSoftmaxKernel<<<blocks, kThreads, 0, stream>>>(x.typed_data(), y->typed_data(), rows, columns,
                                                    scale);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) return ffi::Error::Internal(cudaGetErrorString(error));
  return ffi::Error::Success();
}

ffi::Error RowSoftmaxHost(Matrix x, ffi::Result<Matrix> y, float scale) {
  const int64_t rows = x.dimensions()[0], columns = x.dimensions()[1];
  for (int64_t r = 0; r < rows; ++r) {
    const float* const in = x.typed_data() + r * columns;
    float* const out = y->typed_data() + r * columns;
    float largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < columns; ++c) largest = std::max(largest, scale * in[c]);
    for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(scale * in[c] - largest);
    for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
  }
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(row_softmax_cuda, RowSoftmaxCuda,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Arg<Matrix>()
                                  .Ret<Matrix>()
                                  .Attr<float>("scale"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(row_softmax_host, RowSoftmaxHost,
                              ffi::Ffi::Bind().Arg<Matrix>().Ret<Matrix>().Attr<float>("scale"));
