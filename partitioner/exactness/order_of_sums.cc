// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/exactness/order_of_sums.h"

#include <optional>

#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/monoid.h"

namespace shardcall {
inline namespace internal {
namespace {

// Skips annotations, whose value is that of their operand.
InstrId Annotated(const Module& m, InstrId id) {
  while (HasTrait(KnownTargetOf(m.instr(id)), kIsIdentity) && m.operands(id).size() == 1) {
    id = m.operand(id, 0);
  }
  return id;
}

// Whether one op combines the two parameters, apart from annotations between them.
bool CombinesBy(const Module& m, CompId comp, PartialOp* op) {
  if (RecognizePartialOp(m, comp, op)) return true;
  const InstrId root = Annotated(m, m.comp(comp).root);
  const std::optional<PartialOp> found = PartialOpOf(m.instr(root).opcode);
  if (!found || m.operands(root).size() != 2) return false;
  *op = *found;
  const InstrId a = Annotated(m, m.operand(root, 0)), b = Annotated(m, m.operand(root, 1));
  return a != b && m.instr(a).opcode == Opcode::kParameter &&
         m.instr(b).opcode == Opcode::kParameter;
}

// For a computation that combines two values.
Sums SumsOfCombiner(const Module& m, CompId comp) {
  PartialOp op;
  if (CombinesBy(m, comp, &op)) {
    return op == PartialOp::kSum       ? Sums::kLinear
           : op == PartialOp::kProduct ? Sums::kProduct
                                       : Sums::kNone;
  }
  for (InstrId id : m.comp(comp).instructions) {
    const Instruction& i = m.instr(id);
    const bool rounds = HasTrait(i.opcode, kArithmetic | kComposed);
    if (rounds && !(i.shape->IsArray() && IsInteger(i.shape->element_type()))) {
      return Sums::kUnknown;
    }
  }
  return Sums::kNone;  // it selects one of its operands
}

// All other ops compute each element by itself, or move elements.
bool MaySum(Opcode op) { return HasTrait(op, kCombinesElements); }

// For an op that may sum. If nothing is known of it, any order must be expected.
Sums SumsOf(const Module& m, const Instruction& i) {
  if (HasTrait(i.opcode, kBilinear)) return Sums::kBilinear;
  // Of select-and-scatter the second one combines.
  if (HasTrait(i.opcode, kAppliesToElements))
    return SumsOfCombiner(m, CalledComputations(m, i).back());
  if (i.opcode != Opcode::kCustomCall) return Sums::kUnknown;
  // Boundaries of manual regions move elements only. Sums over devices are counted at the
  // collectives.
  return HasTrait(KnownTargetOf(i), kManualBoundaryTarget) ? Sums::kNone : Sums::kHandler;
}

}  // namespace

OrderOfSums::OrderOfSums(const Module& module) {
  for (int k = 0; k < module.num_instructions(); ++k) {
    const Instruction& i = module.instr(InstrId(k));
    if (!MaySum(i.opcode)) continue;
    const Sums sums = SumsOf(module, i);
    // Two computations may use one name for instructions that sum differently.
    const auto [it, inserted] = by_name_.try_emplace(std::string(i.name), sums);
    if (!inserted && it->second != sums) it->second = Sums::kUnknown;
  }
}

Sums OrderOfSums::Of(Opcode opcode, const std::string& name) const {
  if (!MaySum(opcode)) return Sums::kNone;
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? Sums::kUnknown : it->second;
}

}  // namespace internal
}  // namespace shardcall
