// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/import/value_flow.h"

#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

absl::InlinedVector<ValueFlow, 4> ValueFlows(const Module& module, InstrId id) {
  const Instruction& instr = module.instr(id);
  SHARDCALL_CHECK(HasTrait(instr.opcode, kControlFlow));
  const absl::Span<const InstrId> operands = module.operands(instr);
  if (instr.opcode == Opcode::kWhile) {
    return {{operands[0], id}, {module.comp(instr.as<WhileAttrs>().body).root, id}};
  }
  absl::InlinedVector<ValueFlow, 4> flows;
  // Operand 0 of a conditional chooses; each branch has an operand of its own.
  const bool branches = instr.opcode == Opcode::kConditional;
  size_t next = branches ? 1 : 0;
  for (CompId callee : CalledComputations(module, instr)) {
    const Computation& c = module.comp(callee);
    const size_t first = next;
    for (size_t k = 0; k < c.parameters.size() && first + k < operands.size(); ++k) {
      flows.push_back({operands[first + k], c.parameters[k]});
    }
    flows.push_back({c.root, id});
    if (branches) ++next;
  }
  return flows;
}

absl::InlinedVector<LeafId, 8> OperandLeaves(const Program& program, InstrId id) {
  absl::InlinedVector<LeafId, 8> leaves;
  for (InstrId o : program.module.operands(id)) {
    for (int k = 0; k < program.module.instr(o).shape->num_leaves(); ++k) {
      leaves.push_back(program.leaves.leaf(o, k));
    }
  }
  return leaves;
}

}  // namespace internal
}  // namespace shardcall
