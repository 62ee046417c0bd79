// SPDX-License-Identifier: Apache-2.0
// Matrix products of a BLAS, on one thread: a device is a thread here, so threads of a product
// would compete with the other devices.
#ifndef SHARDCALL_KERNELS_MATH_BLAS_H_
#define SHARDCALL_KERNELS_MATH_BLAS_H_

#include <complex>
#include <cstdint>

namespace shardcall {
inline namespace internal {

// The functions below do not support extents and leading dimensions above this.
inline constexpr int64_t kMostBlasExtent = INT32_MAX;

// Before the first call of a BLAS or LAPACK; the functions below do it themselves.
void UseOneBlasThread();

enum class BlasOp : uint8_t { kNone, kTranspose, kAdjoint };

// c = alpha op(a) op(b) + beta c, row-major; op(a) is [m, k], op(b) is [k, n], c is [m, n]. lda,
// ldb and ldc are the distances between rows as stored, in elements. With beta = 0, c is not read.
// Empty products are zero.
void BlasGemm(BlasOp op_a, BlasOp op_b, int64_t m, int64_t n, int64_t k, float alpha,
              const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
              int64_t ldc);
void BlasGemm(BlasOp op_a, BlasOp op_b, int64_t m, int64_t n, int64_t k, double alpha,
              const double* a, int64_t lda, const double* b, int64_t ldb, double beta, double* c,
              int64_t ldc);
void BlasGemm(BlasOp op_a, BlasOp op_b, int64_t m, int64_t n, int64_t k, std::complex<float> alpha,
              const std::complex<float>* a, int64_t lda, const std::complex<float>* b, int64_t ldb,
              std::complex<float> beta, std::complex<float>* c, int64_t ldc);
void BlasGemm(BlasOp op_a, BlasOp op_b, int64_t m, int64_t n, int64_t k, std::complex<double> alpha,
              const std::complex<double>* a, int64_t lda, const std::complex<double>* b,
              int64_t ldb, std::complex<double> beta, std::complex<double>* c, int64_t ldc);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_MATH_BLAS_H_
