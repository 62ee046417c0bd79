// SPDX-License-Identifier: Apache-2.0
// The smallest sum of functions of few variables each, by variable elimination (bucket elimination,
// Dechter 1999): variables are eliminated one by one, each replaced by a function of its neighbours
// that has the smallest sum over its values. Exact as long as these functions stay small, as they
// do where the variables form chains and trees; a variable that would need a larger one keeps its
// first value.
#ifndef SHARDCALL_PARTITIONER_SPMD_STATES_MIN_SUM_H_
#define SHARDCALL_PARTITIONER_SPMD_STATES_MIN_SUM_H_

#include <cstddef>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {

// A function of some variables, as a table: the value of the last variable changes fastest.
struct CostTable {
  absl::InlinedVector<int, 4> variables;  // ascending
  std::vector<double> cost;
};

// Calls visit(values) for all values of some variables, by their numbers of values, the last one
// fastest.
template <typename Visit>
void ForAllValues(absl::Span<const int> sizes, const Visit& visit) {
  absl::InlinedVector<int, 8> values(sizes.size(), 0);
  for (;;) {
    visit(absl::MakeConstSpan(values));
    size_t k = sizes.size();
    while (k > 0 && ++values[k - 1] == sizes[k - 1]) values[--k] = 0;
    if (k == 0) return;
  }
}

// The values of the variables, of which variable v has sizes[v]. No table that is made has more
// than `most` entries.
std::vector<int> MinimizeSum(absl::Span<const int> sizes, std::vector<CostTable> tables,
                             size_t most);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STATES_MIN_SUM_H_
