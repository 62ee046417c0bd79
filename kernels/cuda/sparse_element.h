// SPDX-License-Identifier: Apache-2.0
// The work of one thread of the sparse product, in a header so that it can be tested without a GPU.
#ifndef SHARDCALL_KERNELS_CUDA_SPARSE_ELEMENT_H_
#define SHARDCALL_KERNELS_CUDA_SPARSE_ELEMENT_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "shardcall/kernels/cuda/launch.h"

#ifdef __CUDACC__
#define SHARDCALL_HOST_DEVICE __host__ __device__
#else
#define SHARDCALL_HOST_DEVICE
#endif

namespace shardcall {
inline namespace internal {
namespace cuda {

template <typename T>
struct Complex {
  T re, im;
};

// The type in which T is summed: f32 for narrow floats; 64-bit unsigned for integers, which is
// exact modulo any smaller width, with or without sign.
template <typename T>
struct Sum {
  using Type = uint64_t;
};
template <>
struct Sum<float> {
  using Type = float;
};
template <>
struct Sum<double> {
  using Type = double;
};
template <>
struct Sum<__half> {
  using Type = float;
};
template <>
struct Sum<__nv_bfloat16> {
  using Type = float;
};
template <typename T>
struct Sum<Complex<T>> {
  using Type = Complex<T>;
};

template <typename T>
SHARDCALL_HOST_DEVICE inline typename Sum<T>::Type Widen(T v) {
  return v;
}
SHARDCALL_HOST_DEVICE inline float Widen(__half v) { return __half2float(v); }
SHARDCALL_HOST_DEVICE inline float Widen(__nv_bfloat16 v) { return __bfloat162float(v); }

template <typename T>
SHARDCALL_HOST_DEVICE inline void Add(T a, T b, T* sum) {
  *sum += a * b;
}
template <typename T>
SHARDCALL_HOST_DEVICE inline void Add(Complex<T> a, Complex<T> b, Complex<T>* sum) {
  sum->re += a.re * b.re - a.im * b.im;
  sum->im += a.re * b.im + a.im * b.re;
}

template <typename S, typename T>
SHARDCALL_HOST_DEVICE inline void Narrow(S sum, T* to) {
  *to = static_cast<T>(sum);
}
SHARDCALL_HOST_DEVICE inline void Narrow(float sum, __half* to) { *to = __float2half_rn(sum); }
SHARDCALL_HOST_DEVICE inline void Narrow(float sum, __nv_bfloat16* to) {
  *to = __float2bfloat16_rn(sum);
}

SHARDCALL_HOST_DEVICE inline int64_t Within(int64_t at, int64_t z) {
  return at < 0 ? 0 : at > z ? z : at;
}

// y[i, j], in the order of the row's entries.
template <typename T>
SHARDCALL_HOST_DEVICE inline void SparseElement(const SparseLaunch& l, int64_t i, int64_t j) {
  typename Sum<T>::Type sum{};
  const int64_t end = Within(l.offsets[i + 1], l.z);
  for (int64_t e = Within(l.offsets[i], l.z); e < end; ++e) {
    const int64_t column = l.columns[e];
    if (column < 0 || column >= l.k) continue;
    Add(Widen(static_cast<const T*>(l.values)[e]),
        Widen(static_cast<const T*>(l.b)[column * l.n + j]), &sum);
  }
  Narrow(sum, static_cast<T*>(l.y) + i * l.n + j);
}

// Whether offset i or entry i, if it exists, is irregular.
SHARDCALL_HOST_DEVICE inline bool IrregularAt(const SparseLaunch& l, int64_t i) {
  const int64_t first = l.offsets[0], last = l.offsets[l.m];
  if (first < 0 || last > l.z) return true;
  if (i < l.m && l.offsets[i] > l.offsets[i + 1]) return true;
  return i >= first && i < last && i < l.z && (l.columns[i] < 0 || l.columns[i] >= l.k);
}
SHARDCALL_HOST_DEVICE inline int32_t ShiftedOffset(const SparseLaunch& l, int64_t i) {
  return static_cast<int32_t>(static_cast<uint32_t>(l.offsets[i]) -
                              static_cast<uint32_t>(l.offsets[0]));
}

// Calls `run` with a null pointer of the C++ type for `type`.
template <typename Run>
void WithSparseType(CudaType type, const Run& run) {
  switch (type) {
    case CudaType::kF32: return run(static_cast<float*>(nullptr));
    case CudaType::kF64: return run(static_cast<double*>(nullptr));
    case CudaType::kF16: return run(static_cast<__half*>(nullptr));
    case CudaType::kBF16: return run(static_cast<__nv_bfloat16*>(nullptr));
    case CudaType::kS8:
    case CudaType::kU8: return run(static_cast<uint8_t*>(nullptr));
    case CudaType::kS16:
    case CudaType::kU16: return run(static_cast<uint16_t*>(nullptr));
    case CudaType::kS32:
    case CudaType::kU32: return run(static_cast<uint32_t*>(nullptr));
    case CudaType::kS64:
    case CudaType::kU64: return run(static_cast<uint64_t*>(nullptr));
    case CudaType::kC64: return run(static_cast<Complex<float>*>(nullptr));
    case CudaType::kC128: return run(static_cast<Complex<double>*>(nullptr));
  }
}

}  // namespace cuda
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_CUDA_SPARSE_ELEMENT_H_
