// SPDX-License-Identifier: Apache-2.0
// The routines of a Fortran LAPACK (and trsm of its BLAS) that the shipped targets call, as
// overloads by element type: getrf(..) is sgetrf_, dgetrf_, cgetrf_ or zgetrf_. Matrices are
// column-major, and integers have 32 bits. Character arguments have a hidden length argument.
#ifndef SHARDCALL_KERNELS_HOST_LAPACK_FORTRAN_H_
#define SHARDCALL_KERNELS_HOST_LAPACK_FORTRAN_H_

#include <complex>
#include <cstddef>

namespace shardcall {
inline namespace internal {
namespace lapack {

using C64 = std::complex<float>;
using C128 = std::complex<double>;
using Int = const int*;
using Char = const char*;

// X(letter, type, its real type)
#define SHARDCALL_LAPACK_REALS(X) X(s, float, float) X(d, double, double)
#define SHARDCALL_LAPACK_COMPLEXES(X) X(c, C64, float) X(z, C128, double)
#define SHARDCALL_LAPACK_TYPES(X) SHARDCALL_LAPACK_REALS(X) SHARDCALL_LAPACK_COMPLEXES(X)

// Declares the routine `name` of `letter`, with an overload that calls it.
#define SHARDCALL_LAPACK_ROUTINE(symbol, name, params, args) \
  extern "C" void symbol params;                             \
  inline void name params { symbol args; }

#define SHARDCALL_LAPACK_ALL(l, T, R)                                                              \
  SHARDCALL_LAPACK_ROUTINE(l##getrf_, getrf,                                                       \
                           (Int m, Int n, T * a, Int lda, int* pivots, int* info),                 \
                           (m, n, a, lda, pivots, info))                                           \
  SHARDCALL_LAPACK_ROUTINE(l##geqrf_, geqrf,                                                       \
                           (Int m, Int n, T * a, Int lda, T * tau, T * work, Int size, int* info), \
                           (m, n, a, lda, tau, work, size, info))                                  \
  SHARDCALL_LAPACK_ROUTINE(l##potrf_, potrf,                                                       \
                           (Char uplo, Int n, T * a, Int lda, int* info, size_t u),                \
                           (uplo, n, a, lda, info, u))                                             \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##gehrd_, gehrd,                                                                            \
      (Int n, Int low, Int high, T * a, Int lda, T * tau, T * work, Int size, int* info),          \
      (n, low, high, a, lda, tau, work, size, info))                                               \
  SHARDCALL_LAPACK_ROUTINE(l##gtsv_, gtsv,                                                         \
                           (Int n, Int rhs, T * dl, T * d, T * du, T * b, Int ldb, int* info),     \
                           (n, rhs, dl, d, du, b, ldb, info))                                      \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##trsm_, trsm,                                                                              \
      (Char side, Char uplo, Char trans, Char diag, Int m, Int n, const T* alpha, const T* a,      \
       Int lda, T* b, Int ldb, size_t s, size_t u, size_t t, size_t g),                            \
      (side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, s, u, t, g))
SHARDCALL_LAPACK_TYPES(SHARDCALL_LAPACK_ALL)
#undef SHARDCALL_LAPACK_ALL

#define SHARDCALL_LAPACK_REAL(l, T, R)                                                             \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##orgqr_, orgqr,                                                                            \
      (Int m, Int n, Int k, T * a, Int lda, const T* tau, T* work, Int size, int* info),           \
      (m, n, k, a, lda, tau, work, size, info))                                                    \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##ormqr_, ormqr,                                                                            \
      (Char side, Char trans, Int m, Int n, Int k, const T* a, Int lda, const T* tau, T* c,        \
       Int ldc, T* work, Int size, int* info, size_t s, size_t t),                                 \
      (side, trans, m, n, k, a, lda, tau, c, ldc, work, size, info, s, t))                         \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##geqp3_, geqp3,                                                                            \
      (Int m, Int n, T * a, Int lda, int* pivots, T* tau, T* work, Int size, int* info),           \
      (m, n, a, lda, pivots, tau, work, size, info))                                               \
  SHARDCALL_LAPACK_ROUTINE(l##sytrd_, sytrd,                                                       \
                           (Char uplo, Int n, T * a, Int lda, R * d, R * e, T * tau, T * work,     \
                            Int size, int* info, size_t u),                                        \
                           (uplo, n, a, lda, d, e, tau, work, size, info, u))                      \
  SHARDCALL_LAPACK_ROUTINE(l##syevd_, syevd,                                                       \
                           (Char job, Char uplo, Int n, T * a, Int lda, R * w, T * work, Int size, \
                            int* iwork, Int isize, int* info, size_t j, size_t u),                 \
                           (job, uplo, n, a, lda, w, work, size, iwork, isize, info, j, u))        \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##geev_, geev,                                                                              \
      (Char jobvl, Char jobvr, Int n, T * a, Int lda, T * wr, T * wi, T * vl, Int ldvl, T * vr,    \
       Int ldvr, T * work, Int size, int* info, size_t l, size_t r),                               \
      (jobvl, jobvr, n, a, lda, wr, wi, vl, ldvl, vr, ldvr, work, size, info, l, r))               \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##gees_, gees,                                                                              \
      (Char jobvs, Char sort, void* select, Int n, T* a, Int lda, int* sdim, T* wr, T* wi, T* vs,  \
       Int ldvs, T* work, Int size, int* bwork, int* info, size_t j, size_t s),                    \
      (jobvs, sort, select, n, a, lda, sdim, wr, wi, vs, ldvs, work, size, bwork, info, j, s))     \
  SHARDCALL_LAPACK_ROUTINE(l##gesdd_, gesdd,                                                       \
                           (Char job, Int m, Int n, T * a, Int lda, R * s, T * u, Int ldu, T * vt, \
                            Int ldvt, T * work, Int size, int* iwork, int* info, size_t j),        \
                           (job, m, n, a, lda, s, u, ldu, vt, ldvt, work, size, iwork, info, j))   \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##gesvd_, gesvd,                                                                            \
      (Char jobu, Char jobvt, Int m, Int n, T * a, Int lda, R * s, T * u, Int ldu, T * vt,         \
       Int ldvt, T * work, Int size, int* info, size_t j, size_t k),                               \
      (jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, work, size, info, j, k))
SHARDCALL_LAPACK_REALS(SHARDCALL_LAPACK_REAL)
#undef SHARDCALL_LAPACK_REAL

#define SHARDCALL_LAPACK_COMPLEX(l, T, R)                                                          \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##ungqr_, orgqr,                                                                            \
      (Int m, Int n, Int k, T * a, Int lda, const T* tau, T* work, Int size, int* info),           \
      (m, n, k, a, lda, tau, work, size, info))                                                    \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##unmqr_, ormqr,                                                                            \
      (Char side, Char trans, Int m, Int n, Int k, const T* a, Int lda, const T* tau, T* c,        \
       Int ldc, T* work, Int size, int* info, size_t s, size_t t),                                 \
      (side, trans, m, n, k, a, lda, tau, c, ldc, work, size, info, s, t))                         \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##geqp3_, geqp3,                                                                            \
      (Int m, Int n, T * a, Int lda, int* pivots, T* tau, T* work, Int size, R* rwork, int* info), \
      (m, n, a, lda, pivots, tau, work, size, rwork, info))                                        \
  SHARDCALL_LAPACK_ROUTINE(l##hetrd_, sytrd,                                                       \
                           (Char uplo, Int n, T * a, Int lda, R * d, R * e, T * tau, T * work,     \
                            Int size, int* info, size_t u),                                        \
                           (uplo, n, a, lda, d, e, tau, work, size, info, u))                      \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##heevd_, syevd,                                                                            \
      (Char job, Char uplo, Int n, T * a, Int lda, R * w, T * work, Int size, R * rwork,           \
       Int rsize, int* iwork, Int isize, int* info, size_t j, size_t u),                           \
      (job, uplo, n, a, lda, w, work, size, rwork, rsize, iwork, isize, info, j, u))               \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##geev_, geev,                                                                              \
      (Char jobvl, Char jobvr, Int n, T * a, Int lda, T * w, T * vl, Int ldvl, T * vr, Int ldvr,   \
       T * work, Int size, R * rwork, int* info, size_t l, size_t r),                              \
      (jobvl, jobvr, n, a, lda, w, vl, ldvl, vr, ldvr, work, size, rwork, info, l, r))             \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##gees_, gees,                                                                              \
      (Char jobvs, Char sort, void* select, Int n, T* a, Int lda, int* sdim, T* w, T* vs,          \
       Int ldvs, T* work, Int size, R* rwork, int* bwork, int* info, size_t j, size_t s),          \
      (jobvs, sort, select, n, a, lda, sdim, w, vs, ldvs, work, size, rwork, bwork, info, j, s))   \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##gesdd_, gesdd,                                                                            \
      (Char job, Int m, Int n, T * a, Int lda, R * s, T * u, Int ldu, T * vt, Int ldvt, T * work,  \
       Int size, R * rwork, int* iwork, int* info, size_t j),                                      \
      (job, m, n, a, lda, s, u, ldu, vt, ldvt, work, size, rwork, iwork, info, j))                 \
  SHARDCALL_LAPACK_ROUTINE(                                                                        \
      l##gesvd_, gesvd,                                                                            \
      (Char jobu, Char jobvt, Int m, Int n, T * a, Int lda, R * s, T * u, Int ldu, T * vt,         \
       Int ldvt, T * work, Int size, R * rwork, int* info, size_t j, size_t k),                    \
      (jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, work, size, rwork, info, j, k))
SHARDCALL_LAPACK_COMPLEXES(SHARDCALL_LAPACK_COMPLEX)
#undef SHARDCALL_LAPACK_COMPLEX
#undef SHARDCALL_LAPACK_ROUTINE

}  // namespace lapack
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_LAPACK_FORTRAN_H_
