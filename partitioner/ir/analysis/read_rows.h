// SPDX-License-Identifier: Apache-2.0
// Sorts of which only the first or the last rows are read, as in jnp.sort(x)[:k] and
// jnp.argsort(x)[-k:].
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_READ_ROWS_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_READ_ROWS_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The rows [begin, end) of a sorted dimension.
struct ReadRows {
  int64_t begin = 0, end = 0;
};
// Of each sort whose results only slices read: the rows that these take, if those are less than
// half of the dimension, from its beginning or up to its end. `equal`: EqualValues of the module;
// what the users of an equal op read counts for both. O(instructions).
absl::flat_hash_map<InstrId, ReadRows> ReadRowsOfSorts(const Module& module,
                                                       absl::Span<const InstrId> equal);

// The type of the places of elements in a dimension of `size`, and twice as many.
inline ElementType PlaceType(int64_t size) {
  return size < INT32_MAX / 2 ? ElementType::kS32 : ElementType::kS64;
}
// The number of a sort's operand that has the place of each element in the sorted dimension, as
// that of jnp.argsort, of PlaceType; -1: none.
int PlacesOperand(const Module& module, InstrId sort);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_READ_ROWS_H_
