// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_ACCUMULATED_DIM_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_ACCUMULATED_DIM_H_

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The dimension of `in` along which a reduce-window accumulates (a cumulative sum or the like: a
// window as long as the dimension, padded before it or, where it accumulates from the end, behind),
// if that is all that it does; else -1.
int AccumulatedDim(const Window& w, const Shape* in);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_ACCUMULATED_DIM_H_
