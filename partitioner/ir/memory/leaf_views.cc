// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/memory/leaf_views.h"

#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/sharding/tuple_leaves.h"

namespace shardcall {
inline namespace internal {

bool IsView(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  if (i.opcode == Opcode::kCopy && i.shape->IsArray()) {
    const Shape* const from = m.instr(m.operand(id, 0)).shape;
    return !i.shape->has_layout() || !from->has_layout() ||
           i.shape->minor_to_major() == from->minor_to_major();
  }
  return HasTrait(i.opcode, kFree | kAliases) || i.opcode == Opcode::kConstant ||
         KnownTargetOf(i) == KnownTarget::kLayoutConstraint;
}

std::optional<ValueLeaf> ViewedLeaf(const Module& m, ValueLeaf leaf) {
  const Instruction& i = m.instr(leaf.value);
  const bool loop = i.opcode == Opcode::kWhile;
  if ((!IsView(m, leaf.value) && !loop) || i.operand_count == 0) return std::nullopt;
  if (i.opcode == Opcode::kTuple) {
    const int element = ElementOfLeaf(*i.shape, leaf.leaf);
    return ValueLeaf{m.operand(leaf.value, element), leaf.leaf - FirstLeafOf(*i.shape, element)};
  }
  const InstrId from = m.operand(leaf.value, 0);
  const Shape& shape = *m.instr(from).shape;
  if (i.opcode == Opcode::kGetTupleElement) {
    return ValueLeaf{from, FirstLeafOf(shape, i.as<TupleIndexAttrs>().index) + leaf.leaf};
  }
  if (shape.num_leaves() != i.shape->num_leaves()) return std::nullopt;
  return ValueLeaf{from, leaf.leaf};
}

ValueLeaf SourceOf(const Module& m, ValueLeaf leaf) {
  while (m.instr(leaf.value).opcode != Opcode::kWhile) {
    const std::optional<ValueLeaf> viewed = ViewedLeaf(m, leaf);
    if (!viewed.has_value()) break;
    leaf = *viewed;
  }
  return leaf;
}

ValueLeaf MakerOf(const Module& m, ValueLeaf leaf, absl::FunctionRef<void(ValueLeaf)> visit) {
  for (;;) {
    const std::optional<ValueLeaf> viewed = ViewedLeaf(m, leaf);
    if (!viewed.has_value()) return leaf;
    if (m.instr(leaf.value).opcode == Opcode::kWhile) visit(leaf);
    leaf = *viewed;
  }
}

}  // namespace internal
}  // namespace shardcall
