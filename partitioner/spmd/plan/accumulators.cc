// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/accumulators.h"

#include "shardcall/partitioner/ir/analysis/called_computations.h"

namespace shardcall {
inline namespace internal {
namespace {

class LoopSearch {
 public:
  LoopSearch(const Program& program, InstrId loop)
      : module_(program.module),
        leaves_(program.leaves),
        loop_(loop),
        attrs_(program.module.instr(loop).as<WhileAttrs>()) {}

  void Find(Accumulators* out) {
    const InstrId root = module_.comp(attrs_.body).root;
    for (int k = 0; k < module_.instr(loop_).shape->num_leaves(); ++k) {
      const LeafId last = leaves_.canonical(root, k);
      const InstrId sum = leaves_.instr(last);
      if (!HasTrait(module_.instr(sum).opcode, kAddsOperands)) continue;
      const LeafId carried = leaves_.canonical(loop_, k);
      for (int operand = 0; operand < 2; ++operand) {
        if (leaves_.canonical(module_.operand(sum, operand)) != carried) continue;
        // A counter: no sum over devices, and every loop has one.
        const InstrId added = module_.operand(sum, 1 - operand);
        if (module_.instr(added).opcode == Opcode::kConstant) break;
        // The sum reads what is carried, and the end of the body reads the sum.
        if (Uses(carried) == 1 && Uses(last) == 1) (*out)[sum] = {loop_, k, operand};
        break;
      }
    }
  }

 private:
  // How often the loop's computations read a value.
  int Uses(LeafId leaf) {
    if (uses_.empty()) CountUses();
    const auto found = uses_.find(leaf);
    return found == uses_.end() ? 0 : found->second;
  }
  void CountUses() {
    for (CompId comp : {attrs_.body, attrs_.condition}) {
      for (InstrId id : module_.comp(comp).instructions) {
        const Opcode opcode = module_.instr(id).opcode;
        // Their results are their operands.
        if (opcode == Opcode::kTuple || opcode == Opcode::kGetTupleElement) continue;
        for (InstrId o : module_.operands(id)) Count(o);
      }
      Count(module_.comp(comp).root);
    }
  }
  void Count(InstrId id) {
    for (int k = 0; k < module_.instr(id).shape->num_leaves(); ++k) {
      ++uses_[leaves_.canonical(id, k)];
    }
  }

  const Module& module_;
  const LeafTable& leaves_;
  const InstrId loop_;
  const WhileAttrs& attrs_;
  absl::flat_hash_map<LeafId, int> uses_;
};

}  // namespace

Accumulators FindAccumulators(const Program& program) {
  Accumulators out;
  for (InstrId loop : LoopsWithOwnBody(program.module)) LoopSearch(program, loop).Find(&out);
  return out;
}

}  // namespace internal
}  // namespace shardcall
