// SPDX-License-Identifier: Apache-2.0
// Reductions by the usual monoids. The order of a sum depends only on the reduced extent, not on
// the position of the dimension: element r is added to partial sum r % kReduceParts, and the
// partial sums are added in a tree. Floats are summed and multiplied in f64 and rounded once.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LANES_REDUCE_KERNELS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LANES_REDUCE_KERNELS_H_

#include <cstdint>

#include "shardcall/sharding/element_type.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

inline constexpr int64_t kReduceParts = 16;

// `in` is [outer, extent, inner], `out` is [outer, inner], of the given type;
// out[a, b] = init op in[a, 0, b] op in[a, 1, b] ..
using ReduceFn = void (*)(ElementType type, const void* in, const void* init, void* out,
                          int64_t outer, int64_t extent, int64_t inner);

// Null if there is none.
ReduceFn FindReduceFn(PartialOp op, ElementType type);

// A sum of f32 elements that arrive in pieces. A SumRowFn adds elements first, first + 1, .. of
// the reduced dimension to the partial sums; a SumColumnsFn adds one row of elements to the
// partial sums of its number. Those have the layout [kReduceParts, columns], and are initialised
// to kNoSum.
inline constexpr double kNoSum = -0.0;  // 0 would turn -0 into 0
using SumRowFn = void (*)(const float* x, int64_t n, int64_t first, double* parts);
using SumColumnsFn = void (*)(const float* x, int64_t n, double* part);
SumRowFn FindSumRow();
SumColumnsFn FindSumColumns();
// start + the sum of column c.
double FinishSum(double start, const double* parts, int64_t columns, int64_t c);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LANES_REDUCE_KERNELS_H_
