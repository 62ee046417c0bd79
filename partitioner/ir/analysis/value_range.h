// SPDX-License-Identifier: Apache-2.0
// The least and the greatest number that an integer value can have, as far as constants, iotas,
// partition ids and the arithmetic on them tell.
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_VALUE_RANGE_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_VALUE_RANGE_H_

#include <cstdint>
#include <optional>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

struct ValueRange {
  int64_t low = 0, high = 0;  // both are included
};

// The range of all elements of `id`. None if it is not an array of integers of at most 64 bits,
// has no elements, or if nothing smaller than its type is known. Arithmetic that may leave the type
// wraps around, so it has no range. Looks through a bounded number of operands, within the
// computation: O(1), but for constants, which are read once.
std::optional<ValueRange> RangeOf(const Module& module, InstrId id);

// Element k of an integer literal that has its values.
int64_t IntegerAt(const Literal& literal, int64_t k);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_VALUE_RANGE_H_
