// SPDX-License-Identifier: Apache-2.0
// Handlers of the shipped targets on the host. Shapes are in HLO's order of dimensions. T is f32,
// bf16, f16 or f64, the same for all operands of a call unless stated otherwise. Narrow types are
// computed in f32 and rounded once at the end. Each row, batch element or head is computed by
// itself, so its result does not depend on how many of them a buffer has: a sharded call gives the
// same bits as the unsharded one. (The exception is rows and columns within one matrix of
// cublas_gemm, since a BLAS may round them depending on its size.) Attributes that are not listed
// are rejected.
#ifndef SHARDCALL_KERNELS_HOST_KERNELS_H_
#define SHARDCALL_KERNELS_HOST_KERNELS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

// rms_norm(x T[.., d], gain T[d]) -> (y T[.., d], rstd f32[..])
//   rstd = 1 / sqrt(mean(x x over d) + eps), y = (x rstd rounded to T) gain
// Attribute: eps (float, 1e-5). gain may have leading dimensions that are equal
// to x's first ones (as after vmap with broadcast_all); it may be f32 for a
// narrow x. rstd may be left out, and may be f64 for f64.
absl::Status RmsNorm(const HandlerContext& context, absl::Span<const BufferView> operands,
                     absl::Span<const BufferView> results);

// rms_norm_bwd(dy, x, gain, rstd) -> (dx, dgain): the gradients of y. dgain is
// the sum over all rows that share a gain: a partial sum if rows are sharded.
absl::Status RmsNormBwd(const HandlerContext& context, absl::Span<const BufferView> operands,
                        absl::Span<const BufferView> results);

// flash_attention_fwd(q T[b,s,h,e], k T[b,t,g,e], v T[b,t,g,f]) -> (out T[b,s,h,f], lse f32[b,h,s])
//   scores = scale q k^T, p = softmax over the allowed keys, out = p v,
//   lse = natural logarithm of the sum of exp(scores)
// g divides h, and head i of q goes with head i / (h / g) of k and v. lse may be
// left out, and may be f64 for f64. Attributes:
//   causal (bool, false)  query i sees keys j <= i
//   window (int, -1)      if >= 0, query i sees keys j with i - j <= window, and
//                         without causal j - i <= window too
//   scale (float, e^-0.5)
//   layout (string, "bshd")  or "bhsd": [b,h,s,e] for q, k, v and out
//   block (two ints)      a hint for tile sizes, of no effect here
// A query that sees no key gives out = 0 and lse = -inf.
absl::Status FlashAttentionFwd(const HandlerContext& context, absl::Span<const BufferView> operands,
                               absl::Span<const BufferView> results);

// flash_attention_bwd(dout, q, k, v, out, lse) -> (dq, dk, dv), attributes as above.
absl::Status FlashAttentionBwd(const HandlerContext& context, absl::Span<const BufferView> operands,
                               absl::Span<const BufferView> results);

// cublas_gemm(a T[B.., m, k], b T[B.., k, n], [c R[B.., m, n]]) -> d R[B.., m, n]
//   d = alpha op(a) op(b) + beta c; under the name gemm too
// in the terms of cuBLAS (op, alpha, beta, leading batch dimensions), on arrays
// in HLO's row-major order. T is also c64 or c128; R is T, or f32 for a narrow
// T. Attributes: transa, transb ("N", "T" or "C", or a bool for "T"; a is then
// [B.., k, m] and b [B.., n, k]), alpha (float, 1), beta (float, 1 with c, else 0).
absl::Status CublasGemm(const HandlerContext& context, absl::Span<const BufferView> operands,
                        absl::Span<const BufferView> results);

// gemm_bwd(dd R[B.., m, n], a T, b T) -> (da T, db T, [dc R[B.., m, n]]), attributes and
// shapes as above: the gradients of d. With beta = 0 dc is zero.
absl::Status GemmBwd(const HandlerContext& context, absl::Span<const BufferView> operands,
                     absl::Span<const BufferView> results);

// fft(x [.., n..]) -> y [.., m..]: the discrete Fourier transform over the
// trailing dimensions, as the HLO op. Attributes: fft_type (string, "FFT", also
// "IFFT", "RFFT", "IRFFT"), fft_length (ints, the last dimension alone). Complex
// types c64, c128, real ones f32, f64; leading dimensions are independent.
absl::Status Fft(const HandlerContext& context, absl::Span<const BufferView> operands,
                 absl::Span<const BufferView> results);

// custom_relu(x T[..]) -> y T[..]: max(x, 0); NaN stays NaN. T is also s8 to s64.
absl::Status CustomRelu(const HandlerContext& context, absl::Span<const BufferView> operands,
                        absl::Span<const BufferView> results);

// custom_relu_bwd(dy T[..], x T[..]) -> dx T[..]: dy where x > 0, else 0.
absl::Status CustomReluBwd(const HandlerContext& context, absl::Span<const BufferView> operands,
                           absl::Span<const BufferView> results);

// topk(x T[.., n], [labels s32[.., n]]) -> (values T[.., k], indices s32[.., k])
//   the k first of each line and where they stand (or their labels), best first
// Attribute: largest (bool, true), else the smallest are best. Equal elements stand
// in the order of the line. Floats are in total order, as for the HLO op: -NaN < -inf
// < .. < -0 < +0 < .. < +inf < NaN. T is also any integer of a byte or more.
absl::Status TopK(const HandlerContext& context, absl::Span<const BufferView> operands,
                  absl::Span<const BufferView> results);

// sparse_matmul(values T[z], columns s32[z], offsets s32[m+1], b T[k, n]) -> y T[m, n]
//   y[i] = sum over e in [offsets[i], offsets[i+1]) of values[e] b[columns[e]]
// a matrix in compressed sparse rows times a dense one. Offsets are clamped to
// [0, z], and a row that ends before it starts is empty; an entry whose column is
// not in [0, k) counts as padding. So no operand is read beyond its ends, and a
// part of the columns, rows or entries is a product by itself. T is also c64, c128
// and any integer of a byte or more. Sums are taken in the order of entries.
absl::Status SparseMatmul(const HandlerContext& context, absl::Span<const BufferView> operands,
                          absl::Span<const BufferView> results);

// sparse_matmul_bwd(dy T[m, n], values T[z], columns s32[z], offsets s32[m+1], b T[k, n])
//     -> (dvalues T[z], db T[k, n])
// The gradients of y. An entry that is in no row or no column has none. T is a float.
absl::Status SparseMatmulBwd(const HandlerContext& context, absl::Span<const BufferView> operands,
                             absl::Span<const BufferView> results);

// nccl_allreduce(x T[..]) -> y T[..]: what the devices of a group reduce to, by the
// communicator of the run, whatever its backend. Attributes:
//   op (string, "sum"), also "product", "max", "min"
//   replica_groups (ints)  partition ids, group by group; without it all are one group
//   group_size (int)       of the groups; without it replica_groups is one group
// All devices of a group must call, in the same order. T is what the communicator
// reduces. On one device: y = x.
absl::Status NcclAllReduce(const HandlerContext& context, absl::Span<const BufferView> operands,
                           absl::Span<const BufferView> results);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_KERNELS_H_
