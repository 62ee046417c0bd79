// SPDX-License-Identifier: Apache-2.0
// Ops whose results are memory of their operands, leaf by leaf of tuples.
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_LEAF_VIEWS_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_LEAF_VIEWS_H_

#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

struct ValueLeaf {
  InstrId value;
  int leaf = 0;  // the flat index in its shape
  friend bool operator==(const ValueLeaf&, const ValueLeaf&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ValueLeaf& l) {
    return H::combine(std::move(h), l.value, l.leaf);
  }
};

// Whether the result shares the memory of operands, or has none of its own, as constants. A copy
// to another layout has.
bool IsView(const Module& m, InstrId id);

// The leaf of an operand that the leaf of a view is; none for a parameter, a constant, an op that
// is no view, and a view that is not one of a certain leaf. Of a loop it is that which it begins
// with.
std::optional<ValueLeaf> ViewedLeaf(const Module& m, ValueLeaf leaf);

// What a view is a name of. A loop is none.
ValueLeaf SourceOf(const Module& m, ValueLeaf leaf);

// Whose memory a leaf has, through views and loops, which keep that of what they begin with. Calls
// `visit` for the loops on the way.
ValueLeaf MakerOf(const Module& m, ValueLeaf leaf, absl::FunctionRef<void(ValueLeaf)> visit);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_LEAF_VIEWS_H_
