// SPDX-License-Identifier: Apache-2.0
// JAX's names of LAPACK targets before the typed FFI (API versions 1 and 2). Sizes and options are
// scalar operands before the arrays, and LAPACK's workspaces are results after them. They compute
// the same as the typed targets (targets.h). b is the product of the batch dimensions. lwork is the
// size of a workspace, which is filled with zeros. `job`s are letters (u8), options are numbers
// (s32). With t = s, d, c, z:
//
//   blas_<t>trsm(left, lower, trans 0 N 1 T 2 C, unit, m, n, b, alpha T[], a, b) -> x
//   lapack_<t>getrf(b, m, n, a) -> (lu, pivots, info)
//   lapack_<t>geqrf(b, m, n, lwork, a) -> (qr, tau, info, work)
//   lapack_<t>geqp3(b, m, n, lwork, a, jpvt) -> (qr, jpvt, tau, info, work [, rwork])
//   lapack_<t>orgqr, ungqr(b, m, n, k, lwork, a, tau) -> (q, info, work)
//   lapack_<t>potrf(lower, b, n, a) -> (factor, info)
//   lapack_<t>syevd, heevd(lower, b, n, a) -> (vectors, values, info, work.., iwork)
//   lapack_<t>geev(b, n, jobvl, jobvr, a) -> (work.., w [, wi], vl, vr, info)
//   lapack_<t>gees(b, n, jobvs, sort, a) -> (form [, rwork], w [, wi], vectors,
//                                            selected, info)
//   lapack_<t>gehrd(n, low, high, lda, b, lwork, a) -> (form, tau, info, work)
//   lapack_<t>sytrd, hetrd(n, lower, lda, b, lwork, a) -> (form, d, e, tau, info, work)
//   lapack_<t>gesdd(full, vectors, b, m, n, lwork, a) -> (scratch, s, u, vt, info,
//                                                         iwork [, rwork], work)
//   cublas_getrf_batched(a) -> (lu, pivots, info, work s8[..]): of square matrices of
//     any of the types; what its backend_config says is not read
//
// Results in brackets exist for complex types, or for real ones in the case of [, wi]. Sizes that
// contradict the shapes are E133, invalid options E131.
#ifndef SHARDCALL_KERNELS_HOST_LAPACK_UNTYPED_H_
#define SHARDCALL_KERNELS_HOST_LAPACK_UNTYPED_H_

#include <string>
#include <utility>
#include <vector>

#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

// All of these targets by name, for calls of any API version.
std::vector<std::pair<std::string, HostHandler>> UntypedLapackTargets();

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_LAPACK_UNTYPED_H_
