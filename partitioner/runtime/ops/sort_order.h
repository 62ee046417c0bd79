// SPDX-License-Identifier: Apache-2.0
// Comparators that order by a key, and stable orders of keys.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_OPS_SORT_ORDER_H_
#define SHARDCALL_PARTITIONER_RUNTIME_OPS_SORT_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/lanes/lane_program.h"

namespace shardcall {

// A comparator `f(a) < f(b)` or `f(a) > f(b)`, where a are the even parameters, b
// the odd ones, and f is the same for both.
struct SortKey {
  // f: parameters as the comparator's (the odd ones are not read), one result.
  LaneProgram program;
  int parameter = -1;  // f is this parameter; else -1
  bool descending = false;
  // Floats are compared as numbers, not by total order: -0 equals 0, and a NaN
  // makes the comparator no order.
  bool numbers = false;
};

// `lanes` is `comparator`, compiled.
absl::optional<SortKey> FindSortKey(const Module& module, CompId comparator,
                                    const LaneProgram& lanes);

// Makes zeros equal in keys of OrderKeys; false if one is a NaN's.
bool NumberKeys(ElementType type, absl::Span<int64_t> keys);

// order[i] is the index of the i-th key; equal keys keep their order. A radix sort of
// keys beside their indices where both fit in 64 bits. `scratch` keeps its memory.
void StableOrder(absl::Span<const int64_t> keys, bool descending, absl::Span<int64_t> order,
                 std::vector<uint64_t>* scratch);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_OPS_SORT_ORDER_H_
