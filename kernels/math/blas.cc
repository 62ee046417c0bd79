// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/math/blas.h"

#include <cblas.h>
#include <pthread.h>

#include <algorithm>

#include "shardcall/sharding/base/made_at_first_use.h"
#include "shardcall/sharding/base/status.h"

// Exists in OpenBLAS only.
extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace shardcall {
inline namespace internal {

void UseOneBlasThread() {
  MadeAtFirstUse([] {
    if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
    return new bool(true);
  });
}

namespace {

// OpenBLAS takes a mutex of its own for the memory of a product, and a child that is forked then
// would wait for it for ever. So a fork waits for the products under way, and holds up others.
constexpr pthread_rwlock_t kFree = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
pthread_rwlock_t products = kFree;
[[maybe_unused]] const int at_fork = pthread_atfork(
    [] { pthread_rwlock_wrlock(&products); }, [] { pthread_rwlock_unlock(&products); },
    [] { products = kFree; });  // the child's thread has another number

class Product {
 public:
  Product() { pthread_rwlock_rdlock(&products); }
  ~Product() { pthread_rwlock_unlock(&products); }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
};

CBLAS_TRANSPOSE Cblas(BlasOp op) {
  if (op == BlasOp::kNone) return CblasNoTrans;
  return op == BlasOp::kTranspose ? CblasTrans : CblasConjTrans;
}

// Handles empty products; false if there is nothing left to multiply.
template <typename T>
bool Begin(int64_t m, int64_t n, int64_t k, T beta, T* c, int64_t ldc) {
  UseOneBlasThread();
  SHARDCALL_CHECK(std::max({m, n, k, ldc}) <= kMostBlasExtent);
  if (m == 0 || n == 0) return false;
  if (k > 0) return true;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T& e = c[i * ldc + j];
      e = beta == T(0) ? T(0) : beta * e;
    }
  }
  return false;
}

void Gemv(CBLAS_TRANSPOSE op, int64_t rows, int64_t cols, float alpha, const float* a, int64_t lda,
          const float* x, int64_t incx, float beta, float* y, int64_t incy) {
  cblas_sgemv(CblasRowMajor, op, rows, cols, alpha, a, lda, x, incx, beta, y, incy);
}
void Gemv(CBLAS_TRANSPOSE op, int64_t rows, int64_t cols, double alpha, const double* a,
          int64_t lda, const double* x, int64_t incx, double beta, double* y, int64_t incy) {
  cblas_dgemv(CblasRowMajor, op, rows, cols, alpha, a, lda, x, incx, beta, y, incy);
}

// With beta = 0 a sum starts at +0 and is never -0. But complex kernels that subtract one sum of
// products from another can give -0, which is changed to +0.
template <typename R>
void ClearNegativeZeros(int64_t m, int64_t n, std::complex<R>* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) {
    R* parts = reinterpret_cast<R*>(c + i * ldc);
    for (int64_t j = 0; j < 2 * n; ++j) parts[j] += R(0);
  }
}

// Products with a vector use gemv, which reads the matrix once, in place. False if neither side is
// a vector.
template <typename T>
bool ByVector(BlasOp op_a, BlasOp op_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a,
              int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  const bool turned_a = op_a != BlasOp::kNone, turned_b = op_b != BlasOp::kNone;
  if (n == 1) {
    for (int64_t i = 0; i < m && beta == T(0); ++i) c[i * ldc] = T(0);  // c is not read
    Gemv(turned_a ? CblasTrans : CblasNoTrans, turned_a ? k : m, turned_a ? m : k, alpha, a, lda, b,
         turned_b ? 1 : ldb, beta, c, ldc);
    return true;
  }
  if (m != 1) return false;
  for (int64_t j = 0; j < n && beta == T(0); ++j) c[j] = T(0);
  Gemv(turned_b ? CblasNoTrans : CblasTrans, turned_b ? n : k, turned_b ? k : n, alpha, b, ldb, a,
       turned_a ? lda : 1, beta, c, 1);
  return true;
}

}  // namespace

void BlasGemm(BlasOp op_a, BlasOp op_b, int64_t m, int64_t n, int64_t k, float alpha,
              const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
              int64_t ldc) {
  if (!Begin(m, n, k, beta, c, ldc)) return;
  const Product product;
  if (ByVector(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)) return;
  cblas_sgemm(CblasRowMajor, Cblas(op_a), Cblas(op_b), m, n, k, alpha, a, lda, b, ldb, beta, c,
              ldc);
}

void BlasGemm(BlasOp op_a, BlasOp op_b, int64_t m, int64_t n, int64_t k, double alpha,
              const double* a, int64_t lda, const double* b, int64_t ldb, double beta, double* c,
              int64_t ldc) {
  if (!Begin(m, n, k, beta, c, ldc)) return;
  const Product product;
  if (ByVector(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)) return;
  cblas_dgemm(CblasRowMajor, Cblas(op_a), Cblas(op_b), m, n, k, alpha, a, lda, b, ldb, beta, c,
              ldc);
}

void BlasGemm(BlasOp op_a, BlasOp op_b, int64_t m, int64_t n, int64_t k, std::complex<float> alpha,
              const std::complex<float>* a, int64_t lda, const std::complex<float>* b, int64_t ldb,
              std::complex<float> beta, std::complex<float>* c, int64_t ldc) {
  if (!Begin(m, n, k, beta, c, ldc)) return;
  const Product product;
  cblas_cgemm(CblasRowMajor, Cblas(op_a), Cblas(op_b), m, n, k, &alpha, a, lda, b, ldb, &beta, c,
              ldc);
  if (beta == std::complex<float>(0)) ClearNegativeZeros(m, n, c, ldc);
}

void BlasGemm(BlasOp op_a, BlasOp op_b, int64_t m, int64_t n, int64_t k, std::complex<double> alpha,
              const std::complex<double>* a, int64_t lda, const std::complex<double>* b,
              int64_t ldb, std::complex<double> beta, std::complex<double>* c, int64_t ldc) {
  if (!Begin(m, n, k, beta, c, ldc)) return;
  const Product product;
  cblas_zgemm(CblasRowMajor, Cblas(op_a), Cblas(op_b), m, n, k, &alpha, a, lda, b, ldb, &beta, c,
              ldc);
  if (beta == std::complex<double>(0)) ClearNegativeZeros(m, n, c, ldc);
}

}  // namespace internal
}  // namespace shardcall
