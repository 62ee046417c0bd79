// SPDX-License-Identifier: Apache-2.0
// The matrix product of dense arrays of any element type, as HLO's `dot` wants
// it: floats through a BLAS, f32 for types narrower than that with one rounding
// at the end, complex numbers too, and integers exactly, wrapping around in the
// result's width. pred is "or" of "and"s. On one thread. Equal calls give equal
// bits; where sums are not exact, a BLAS may round a row of a large product
// differently in the last place when the number of rows differs.
#ifndef SHARDCALL_KERNELS_HOST_MATMUL_H_
#define SHARDCALL_KERNELS_HOST_MATMUL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall::inline internal {

// c[i] = op(a[i]) op(b[i]) for i in [0, batch). op transposes or not: a is
// [batch, m, k], or [batch, k, m] with transpose_a; b is [batch, k, n], or
// [batch, n, k] with transpose_b; c is [batch, m, n].
struct MatmulShape {
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
};

// Whether Matmul takes these types: both operands and the result float or
// complex (a complex operand needs a complex result), or all of them integers,
// or all pred; integers into floats too.
bool MatmulSupports(ElementType a, ElementType b, ElementType result);

// Products are made in the widest of the three types, at least f32 for floats.
// E134 for types that are not supported, E133 for extents above 2^31 - 1.
absl::Status Matmul(const MatmulShape& shape, ElementType a_type, const void* a, ElementType b_type,
                    const void* b, ElementType result_type, void* c);

// The plain case: both operands of one type.
inline absl::Status Gemm(ElementType type, ElementType result_type, int64_t m, int64_t n, int64_t k,
                         const void* a, const void* b, void* c) {
  return Matmul({.m = m, .n = n, .k = k}, type, a, type, b, result_type, c);
}

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_KERNELS_HOST_MATMUL_H_
