// SPDX-License-Identifier: Apache-2.0
// Arrays of integers that are an arithmetic progression, and arrays whose elements are known.
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_AFFINE_INTEGERS_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_AFFINE_INTEGERS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// An element at place j of dimension `dim` is first + step * j, wherever it is in other dimensions.
struct Progression {
  int dim = 0;
  int64_t first = 0, step = 0;
};

// The one number that all elements of an array of integers are, if they are.
std::optional<int64_t> NumberOf(const Module& module, InstrId id);

// That of an array of integers with a step, as far as iotas, constants and arithmetic on them tell
// within the computation. None if the numbers may leave their type. Looks through a bounded number
// of operands.
std::optional<Progression> ProgressionOf(const Module& module, InstrId id);

// Appends the elements of an array of integers, in row-major order, and returns true; false,
// with anything appended, if one of them is not known.
bool AppendConstants(const Module& module, InstrId id, std::vector<int64_t>* out);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_AFFINE_INTEGERS_H_
