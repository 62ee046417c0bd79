// SPDX-License-Identifier: Apache-2.0
// The leaves of tuple shapes by element, for large tuples: O(1) for tuples of leaves, O(log
// elements) for tuples of tuples.
#ifndef SHARDCALL_SHARDING_TUPLE_LEAVES_H_
#define SHARDCALL_SHARDING_TUPLE_LEAVES_H_

#include "shardcall/sharding/shape.h"

namespace shardcall {
inline namespace internal {

// The flat index of the first leaf of an element; num_leaves() behind the last element.
int FirstLeafOf(const Shape& tuple, int element);

// The element that holds a leaf.
int ElementOfLeaf(const Shape& tuple, int flat_index);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_TUPLE_LEAVES_H_
