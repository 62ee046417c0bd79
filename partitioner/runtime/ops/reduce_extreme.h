// SPDX-License-Identifier: Apache-2.0
// Reductions of floats by maximum and minimum.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_OPS_REDUCE_EXTREME_H_
#define SHARDCALL_PARTITIONER_RUNTIME_OPS_REDUCE_EXTREME_H_

#include "shardcall/partitioner/runtime/ops/reduce_kernels.h"

namespace shardcall {

// For float types. Any order gives the same value, so there are as many partial
// results as suits the processor.
ReduceFn FindFloatMaximum(ElementType type);
ReduceFn FindFloatMinimum(ElementType type);

// *best becomes the extreme of itself and n elements; NaN if there is one.
using ExtremeRowFn = void (*)(const float* x, int64_t n, float* best);
ExtremeRowFn FindExtremeRow(bool maximum);

// Of windows: out[i] = init op taps[0][i] op taps[1][i] .. for maximum, minimum and
// sums (in f64, rounded once), from the left. Null for other ops.
using WindowTapsFn = void (*)(const float* const* taps, int64_t count, float init, float* out,
                              int64_t n);
WindowTapsFn FindWindowTaps(Opcode monoid);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_OPS_REDUCE_EXTREME_H_
