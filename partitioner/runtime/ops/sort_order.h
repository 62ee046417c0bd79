// SPDX-License-Identifier: Apache-2.0
// Comparators that compare a key, and stable sorting by keys.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_OPS_SORT_ORDER_H_
#define SHARDCALL_PARTITIONER_RUNTIME_OPS_SORT_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/runtime/ops/lane_program.h"

namespace shardcall {
inline namespace internal {

// A comparator `f(a) < f(b)` or `f(a) > f(b)`, where a are the even parameters, b the odd ones,
// and f is the same function for both.
struct SortKey {
  // f: has the comparator's parameters (the odd ones are not read), and one result.
  LaneProgram program;
  int parameter = -1;  // f is this parameter; else -1
  bool descending = false;
  // Floats are compared as numbers, not in total order: -0 equals 0, and with a NaN the comparator
  // is not an order.
  bool numbers = false;
};

// `lanes` is the compiled `comparator`.
absl::optional<SortKey> FindSortKey(const Module& module, CompId comparator,
                                    const LaneProgram& lanes);

// Makes the keys of zeros equal in keys of OrderKeys; false if one is the key of a NaN.
bool NumberKeys(ElementType type, absl::Span<int64_t> keys);

// order[i] is the index of the i-th key; equal keys keep their order. Radix-sorts keys together
// with their indices if both fit in 64 bits. `scratch` keeps its memory between calls.
void StableOrder(absl::Span<const int64_t> keys, bool descending, absl::Span<int64_t> order,
                 std::vector<uint64_t>* scratch);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_OPS_SORT_ORDER_H_
