// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/liveness.h"

#include "shardcall/partitioner/ir/analysis/called_computations.h"

namespace shardcall {
inline namespace internal {

Liveness::Liveness(const Module& module, EffectsAt at)
    : module_(module),
      post_order_(ComputationPostOrder(module)),
      instructions_(module.num_instructions()) {
  const Effects effects(module, at);
  for (CompId c : post_order_) Walk(module.comp(c), effects);
}

void Liveness::Walk(const Computation& comp, const Effects& effects) {
  if (comp.root.valid()) instructions_[comp.root.value] = true;
  for (InstrId p : comp.parameters) {
    if (p.valid()) instructions_[p.value] = true;
  }
  // In reverse order, since operands and control predecessors come before their users.
  for (size_t k = comp.instructions.size(); k-- > 0;) {
    const InstrId id = comp.instructions[k];
    const Instruction& i = module_.instr(id);
    if (!instructions_[id.value] && !effects.Has(i)) continue;
    instructions_[id.value] = true;
    for (InstrId operand : module_.operands(i)) instructions_[operand.value] = true;
    if (const RareAttributes* rare = module_.rare(i)) {
      for (InstrId before : rare->control_predecessors) instructions_[before.value] = true;
    }
  }
}

std::vector<bool> Liveness::CalledComputations() const {
  std::vector<bool> called(module_.num_computations());
  called[module_.entry().value] = true;
  for (size_t k = post_order_.size(); k-- > 0;) {  // callers before callees
    if (!called[post_order_[k].value]) continue;
    for (InstrId id : module_.comp(post_order_[k]).instructions) {
      const Instruction& i = module_.instr(id);
      if (!Has(id) || !HasTrait(i.opcode, kCallsComputation)) continue;
      for (CompId c : shardcall::CalledComputations(module_, i)) {
        if (c.valid()) called[c.value] = true;
      }
    }
  }
  return called;
}

}  // namespace internal
}  // namespace shardcall
