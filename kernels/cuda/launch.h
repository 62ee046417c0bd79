// SPDX-License-Identifier: Apache-2.0
// What the .cu files offer to the handlers: launches on a stream, without a wait.
// 0, or the cudaError_t of the launch. Pointers are device memory.
#ifndef SHARDCALL_KERNELS_CUDA_LAUNCH_H_
#define SHARDCALL_KERNELS_CUDA_LAUNCH_H_

#include <cstdint>

namespace shardcall {

enum class CudaType { kF32, kF64, kF16, kBF16, kS8, kS16, kS32, kS64 };

// y = x <= 0 ? 0 : x, so that NaN stays; n elements.
int LaunchRelu(CudaType type, const void* x, void* y, int64_t n, void* stream);

struct RmsNormLaunch {
  CudaType type, gain_type, rstd_type;  // floats
  int64_t rows, width, rows_per_gain;   // rows > 0, width > 0
  double eps;
  const void *x, *gain;
  void *y, *rstd;  // rstd may be null
};
int LaunchRmsNorm(const RmsNormLaunch& launch, void* stream);

const char* CudaErrorText(int code);

}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_CUDA_LAUNCH_H_
