// SPDX-License-Identifier: Apache-2.0
// Where the windows of slices, updates, gathers and scatters may begin.
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_ONE_WINDOW_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_ONE_WINDOW_H_

#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Whether a gather or scatter by these indices has one window.
bool HasOneWindow(const Shape& indices, int64_t index_vector_dim);

// The largest start, by scalar operand from `first` on, or by component of the index vector.
struct StartLimits {
  int first = 0;
  absl::InlinedVector<int64_t, 8> most;
};
// Of a dynamic-slice, dynamic-update-slice, gather or scatter.
StartLimits LimitsOfStarts(const Module& module, const Instruction& i);

// The starts of a dynamic-slice or dynamic-update-slice by dimension, clamped as the op does; none
// unless constants give all of them.
std::optional<absl::InlinedVector<int64_t, 8>> ConstantStarts(const Module& module, InstrId id);

// Sizes of a scatter's window, by dimension of its operand.
absl::InlinedVector<int64_t, 8> ScatterWindow(const Module& module, const Instruction& scatter);

// Whether all elements of `start` are known to be between 0 and `most`.
bool StartInRange(const Module& module, InstrId start, int64_t most);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_ONE_WINDOW_H_
