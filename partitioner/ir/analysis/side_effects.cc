// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/side_effects.h"

#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/known_targets.h"

namespace shardcall {
inline namespace internal {

bool IsPure(Opcode opcode) {
  return !HasTrait(opcode, kSideEffect | kCollectiveOp | kAsyncForm | kHoldsPlace) &&
         !RunsComputations(opcode);
}

bool HasSideEffect(const Instruction& instr, EffectsAt at) {
  if (instr.opcode != Opcode::kCustomCall) return HasTrait(instr.opcode, kSideEffect);
  if (!instr.as<CustomCallAttrs>().has_side_effect) return false;
  const uint32_t silent =
      at == EffectsAt::kRunning ? kIsIdentity | kManualBoundaryTarget : kManualBoundaryTarget;
  return !HasTrait(KnownTargetOf(instr), silent);
}

bool HasArray(const Shape* shape) {
  for (int k = 0; k < shape->num_leaves(); ++k) {
    if (shape->leaf(k)->IsArray()) return true;
  }
  return false;
}

bool ResultsInArray(const Instruction& instr) { return HasArray(instr.shape); }

bool RunsOnShards(const Instruction& instr) {
  return HasTrait(KnownTargetOf(instr), kOnShards) && !ResultsInArray(instr);
}

Effects::Effects(const Module& module, EffectsAt at)
    : m_(module), at_(at), comps_(module.num_computations()) {
  for (CompId c : ComputationPostOrder(module)) {
    for (InstrId id : module.comp(c).instructions) {
      if (Has(module.instr(id))) comps_[c.value] = true;
    }
  }
}

bool Effects::Has(const Instruction& instr) const {
  if (HasSideEffect(instr, at_)) return true;
  if (!HasTrait(instr.opcode, kCallsComputation)) return false;
  for (CompId c : CalledComputations(m_, instr)) {
    if (c.valid() && comps_[c.value]) return true;
  }
  return false;
}

}  // namespace internal
}  // namespace shardcall
