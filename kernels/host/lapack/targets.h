// SPDX-License-Identifier: Apache-2.0
// The LAPACK targets: lapack_<t><routine>_ffi with t = s, d, c, z for T = f32, f64, c64, c128, as
// typed-FFI calls. Matrices are [.., m, n] in column-major layout (as the call states), with any
// leading batch dimensions, which are independent. k = min(m, n); R is T's real type; `info` is
// s32[..], LAPACK's status of each matrix. Letters are encoded as numbers (`uplo = 76 : ui8`).
//
//   getrf(a) -> (lu, pivots s32[.., k] from 1, info)
//   geqrf(a) -> (qr, tau T[.., k])
//   geqp3(a, jpvt s32[.., n]) -> (qr, jpvt, tau)
//   orgqr, ungqr(a, tau T[.., k]) -> q
//   ormqr, unmqr(a, tau, c; left, transpose) -> op(Q) c or c op(Q)
//   potrf(a; uplo L U) -> (factor, info)       the other triangle keeps a
//   trsm(a, b; side L R, uplo, trans_x N T C, diag N U) -> x
//   gtsv(dl, d, du T[.., n], b T[.., n, r]) -> (dl, d, du, x, info)
//   syevd, heevd(a; mode V N, uplo) -> (vectors, values R[.., n], info)
//   geev(a; compute_left, compute_right V N) -> (w [, wi], vl, vr, info)
//                                              vectors are complex
//   gees(a; mode V N, sort N) -> (form, vectors, w [, wi], selected, info)
//   gehrd(a; low, high) -> (form, tau T[.., n - 1], info)
//   sytrd, hetrd(a; uplo) -> (form, d R[.., n], e R[.., n - 1], tau, info)
//   gesdd, gesvd(a; mode A S N) -> (scratch, s R[.., k], u, vt, info)
//
// geev, gees, gesdd and gesvd give NaN and info -4 for a matrix that is not finite.
#ifndef SHARDCALL_KERNELS_HOST_LAPACK_TARGETS_H_
#define SHARDCALL_KERNELS_HOST_LAPACK_TARGETS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

// All of these targets, by name.
std::vector<std::pair<std::string, HostHandler>> LapackTargets();

}  // namespace internal
}  // namespace shardcall

namespace shardcall {
inline namespace internal {
namespace lapack {

#define SHARDCALL_LAPACK_TARGET(Name)                                                     \
  template <typename T>                                                                   \
  absl::Status Name(const HandlerContext& context, absl::Span<const BufferView> operands, \
                    absl::Span<const BufferView> results);
SHARDCALL_LAPACK_TARGET(Getrf)
SHARDCALL_LAPACK_TARGET(Geqrf)
SHARDCALL_LAPACK_TARGET(Geqp3)
SHARDCALL_LAPACK_TARGET(Orgqr)
SHARDCALL_LAPACK_TARGET(Ormqr)
SHARDCALL_LAPACK_TARGET(Potrf)
SHARDCALL_LAPACK_TARGET(Trsm)
SHARDCALL_LAPACK_TARGET(Gtsv)
SHARDCALL_LAPACK_TARGET(Syevd)
SHARDCALL_LAPACK_TARGET(Geev)
SHARDCALL_LAPACK_TARGET(Gees)
SHARDCALL_LAPACK_TARGET(Gehrd)
SHARDCALL_LAPACK_TARGET(Sytrd)
SHARDCALL_LAPACK_TARGET(Gesdd)
SHARDCALL_LAPACK_TARGET(Gesvd)
#undef SHARDCALL_LAPACK_TARGET

}  // namespace lapack
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_LAPACK_TARGETS_H_
