// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lower/passes_sizes.h"

#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/row_by_opcode.h"

namespace shardcall {
inline namespace internal {
namespace {

// Whether every dynamic dimension of `from` is dynamic in `to`.
bool Covers(const Shape& to, const Shape& from) {
  if (to.num_leaves() != from.num_leaves()) return false;
  for (int k = 0; k < from.num_leaves(); ++k) {
    const Shape *a = from.leaf(k), *b = to.leaf(k);
    if (!a->IsArray()) continue;
    if (!b->IsArray() || a->rank() != b->rank()) return false;
    for (int d = 0; d < a->rank(); ++d) {
      if (a->IsDynamicDim(d) && !b->IsDynamicDim(d)) return false;
    }
  }
  return true;
}

const Shape& OperandShape(const Module& m, const Instruction& i, size_t k) {
  return *m.instr(m.operands(i)[k]).shape;
}
const Shape& RootShape(const Module& m, CompId c) { return *m.instr(m.comp(c).root).shape; }

// The forms of ops that pass values on: whether no dynamic dimension is treated as static.
bool OperandPasses(const Module& m, const Instruction& i) {
  return Covers(*i.shape, OperandShape(m, i, 0));
}
bool TuplePasses(const Module& m, const Instruction& i) {
  for (size_t k = 0; k < i.operand_count; ++k) {
    if (!Covers(*i.shape->tuple()[k], OperandShape(m, i, k))) return false;
  }
  return true;
}
bool ElementPasses(const Module& m, const Instruction& i) {
  return Covers(*i.shape, *OperandShape(m, i, 0).tuple()[i.as<TupleIndexAttrs>().index]);
}
bool CustomCallPasses(const Module& m, const Instruction& i) {
  return !HasTrait(KnownTargetOf(i), kIsIdentity) || i.operand_count != 1 || OperandPasses(m, i);
}
bool WhilePasses(const Module& m, const Instruction& i) {
  const auto& attrs = i.as<WhileAttrs>();
  const Shape& state = *m.instr(m.comp(attrs.body).parameters[0]).shape;
  return Covers(state, OperandShape(m, i, 0)) && Covers(state, RootShape(m, attrs.body)) &&
         Covers(*m.instr(m.comp(attrs.condition).parameters[0]).shape, state) &&
         Covers(*i.shape, state);
}
// The parameters take the operands from `first` on.
bool CalleePasses(const Module& m, const Instruction& i, CompId callee, size_t first) {
  const Computation& comp = m.comp(callee);
  for (size_t k = 0; k < comp.parameters.size(); ++k) {
    if (first + k >= i.operand_count ||
        !Covers(*m.instr(comp.parameters[k]).shape, OperandShape(m, i, first + k))) {
      return false;
    }
  }
  return Covers(*i.shape, RootShape(m, callee));
}
bool ConditionalPasses(const Module& m, const Instruction& i) {
  size_t next = 1;
  for (CompId branch : CalledComputations(m, i)) {
    if (!CalleePasses(m, i, branch, next++)) return false;
  }
  return true;
}
bool CallPasses(const Module& m, const Instruction& i) {
  for (CompId callee : CalledComputations(m, i)) {
    if (!CalleePasses(m, i, callee, 0)) return false;
  }
  return true;
}

struct PassingRow {
  Opcode opcode;
  bool (*passes)(const Module& m, const Instruction& i);
};
constexpr PassingRow kPassingRows[] = {
    {Opcode::kTuple, TuplePasses},
    {Opcode::kGetTupleElement, ElementPasses},
    {Opcode::kCopy, OperandPasses},
    {Opcode::kOptBarrier, OperandPasses},
    {Opcode::kDomain, OperandPasses},
    {Opcode::kAddDependency, OperandPasses},
    {Opcode::kCustomCall, CustomCallPasses},
    {Opcode::kWhile, WhilePasses},
    {Opcode::kConditional, ConditionalPasses},
    {Opcode::kCall, CallPasses},
    {Opcode::kFusion, CallPasses},
};
static_assert(HasRowPerOp(kPassingRows, &OpcodeNames::sized, "Passes"));

}  // namespace

bool HasDynamicLeaf(const Shape& shape) {
  for (int k = 0; k < shape.num_leaves(); ++k) {
    const Shape* leaf = shape.leaf(k);
    if (leaf->IsArray() && leaf->IsDynamic()) return true;
  }
  return false;
}

bool PassesWell(const Module& m, const Instruction& i) {
  if (const PassingRow* row = RowByOpcode(kPassingRows, i.opcode)) return row->passes(m, i);
  return !HasTrait(i.opcode, kAsyncForm) || !HasDynamicLeaf(*i.shape);
}

}  // namespace internal
}  // namespace shardcall
