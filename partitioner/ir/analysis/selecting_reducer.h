// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_SELECTING_REDUCER_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_SELECTING_REDUCER_H_

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Whether the computation of a reduction only compares and selects: each of its results is either
// of the two values that it combines, as in an argmax. Then an initial value may be combined any
// number of times.
bool IsSelectingReducer(const Module& m, CompId computation);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_SELECTING_REDUCER_H_
