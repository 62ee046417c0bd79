// SPDX-License-Identifier: Apache-2.0
// Launchers of the .cu files' kernels. They launch on a stream without waiting, and return 0 or the
// cudaError_t of the launch. Pointers are device memory.
#ifndef SHARDCALL_KERNELS_CUDA_LAUNCH_H_
#define SHARDCALL_KERNELS_CUDA_LAUNCH_H_

#include <cstdint>

namespace shardcall {
inline namespace internal {

enum class CudaType {
  kF32,
  kF64,
  kF16,
  kBF16,
  kS8,
  kS16,
  kS32,
  kS64,
  kU8,
  kU16,
  kU32,
  kU64,
  kC64,
  kC128
};

// y = x <= 0 ? 0 : x, so NaN stays NaN; n elements, not of complex or unsigned types.
int LaunchRelu(CudaType type, const void* x, void* y, int64_t n, void* stream);

struct RmsNormLaunch {
  CudaType type, gain_type, rstd_type;  // floats
  int64_t rows, width, rows_per_gain;   // rows > 0, width > 0
  double eps;
  const void *x, *gain;
  void *y, *rstd;  // rstd may be null
};
int LaunchRmsNorm(const RmsNormLaunch& launch, void* stream);

// y[m, n] = a b, where a is [m, k] in compressed sparse rows of z entries, in any order,
// with any offsets and columns: see sparse_matmul in kernels/host/kernels.h. m > 0, n > 0.
struct SparseLaunch {
  CudaType type;
  int64_t m, k, n, z;
  const void* values;
  const int32_t *columns, *offsets;
  const void* b;
  void* y;
};
int LaunchSparseMatmul(const SparseLaunch& launch, void* stream);

// Properties of offsets and columns that must hold before a library reads them unchecked.
struct SparseStructure {
  int32_t irregular;    // nonzero if offsets decrease or leave [0, z], or if a column leaves [0, k)
  int32_t first, last;  // the first and the last offset
};
// Fills `structure`, which must be zeroed, and shifted[m + 1], the offsets minus the first one.
int LaunchSparseCheck(const SparseLaunch& launch, SparseStructure* structure, int32_t* shifted,
                      void* stream);

const char* CudaErrorText(int code);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_CUDA_LAUNCH_H_
