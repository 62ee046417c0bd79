// SPDX-License-Identifier: Apache-2.0
// Slices at run-time starts that read what another one has given.
#ifndef SHARDCALL_PARTITIONER_PASS_NESTED_SLICES_H_
#define SHARDCALL_PARTITIONER_PASS_NESTED_SLICES_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/build/builder.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// By instruction: whether it is a dynamic-slice, a dynamic-update-slice, or a gather or scatter of
// one window, whose starts are not all known to be in range, and whose operand consists of elements
// that another of these gave, or whose result is what another one reads, both through ops that
// hand elements on. O(instructions x depth of calls).
std::vector<bool> NestedSlices(const Module& module);

// Whether a gather or scatter by these indices has one window.
bool HasOneWindow(const Shape& indices, int64_t index_vector_dim);

// The largest start, by scalar operand from `first` on, or by component of the index vector.
struct StartLimits {
  int first = 0;
  absl::InlinedVector<int64_t, 8> most;
};
// Of a dynamic-slice, dynamic-update-slice, gather or scatter.
StartLimits LimitsOfStarts(const Module& module, const Instruction& i);

// Sizes of a scatter's window, by dimension of its operand.
absl::InlinedVector<int64_t, 8> ScatterWindow(const Module& module, const Instruction& scatter);

// Whether all elements of `start` are known to be between 0 and `most`.
bool StartInRange(const Module& module, InstrId start, int64_t most);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_NESTED_SLICES_H_
