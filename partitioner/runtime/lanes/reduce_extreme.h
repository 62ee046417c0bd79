// SPDX-License-Identifier: Apache-2.0
// Reductions of floats by maximum and minimum.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LANES_REDUCE_EXTREME_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LANES_REDUCE_EXTREME_H_

#include "shardcall/partitioner/runtime/lanes/reduce_kernels.h"

namespace shardcall {
inline namespace internal {

// For float types. The result does not depend on the order, so the number of partial results is
// chosen for the processor.
ReduceFn FindFloatMaximum(ElementType type);
ReduceFn FindFloatMinimum(ElementType type);

// *best becomes the extreme of itself and n elements; NaN if there is one.
using ExtremeRowFn = void (*)(const float* x, int64_t n, float* best);
ExtremeRowFn FindExtremeRow(bool maximum);

// For windows: out[i] = init op taps[0][i] op taps[1][i] .., from the left, for maximum, minimum
// and sums (in f64, rounded once). Null for other ops.
using WindowTapsFn = void (*)(const float* const* taps, int64_t count, float init, float* out,
                              int64_t n);
WindowTapsFn FindWindowTaps(PartialOp op);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LANES_REDUCE_EXTREME_H_
