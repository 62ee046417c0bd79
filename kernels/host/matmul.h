// SPDX-License-Identifier: Apache-2.0
// The matrix product of dense arrays of any element type, for HLO's `dot`, on one thread. Floats
// use a BLAS; types narrower than f32 are computed in f32 and rounded once at the end. Complex
// types are supported. Integers are exact and wrap around in the result's width. For pred it is an
// "or" of "and"s. Equal calls give equal bits. Where sums are not exact, a BLAS may round the last
// digit of a row of a large product differently if the number of rows differs.
#ifndef SHARDCALL_KERNELS_HOST_MATMUL_H_
#define SHARDCALL_KERNELS_HOST_MATMUL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {

// c[i] = op(a[i]) op(b[i]) for i in [0, batch), where op may transpose: a is [batch, m, k], or
// [batch, k, m] with transpose_a; b is [batch, k, n], or [batch, n, k] with transpose_b; c is
// [batch, m, n].
struct MatmulShape {
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
};

// Whether Matmul supports these types: operands and result float or complex (a complex operand
// needs a complex result), or all integers, or all pred; also integer operands with a float result.
bool MatmulSupports(ElementType a, ElementType b, ElementType result);

// Products are computed in the widest of the three types, at least f32 for floats. E134 for
// unsupported types, E133 for extents above 2^31 - 1.
absl::Status Matmul(const MatmulShape& shape, ElementType a_type, const void* a, ElementType b_type,
                    const void* b, ElementType result_type, void* c);

// For two operands of the same type.
inline absl::Status Gemm(ElementType type, ElementType result_type, int64_t m, int64_t n, int64_t k,
                         const void* a, const void* b, void* c) {
  return Matmul({.m = m, .n = n, .k = k}, type, a, type, b, result_type, c);
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_HOST_MATMUL_H_
