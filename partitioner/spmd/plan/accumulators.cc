// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/accumulators.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"

namespace shardcall {
inline namespace internal {
namespace {

class LoopSearch {
 public:
  LoopSearch(const Program& program, InstrId loop, PassedProducts products)
      : products_(products),
        module_(program.module),
        leaves_(program.leaves),
        loop_(loop),
        attrs_(program.module.instr(loop).as<WhileAttrs>()) {}

  void Find(Accumulators* out) {
    const InstrId root = module_.comp(attrs_.body).root;
    for (int k = 0; k < module_.instr(loop_).shape->num_leaves(); ++k) {
      const LeafId last = leaves_.canonical(root, k);
      const InstrId sum = leaves_.instr(last);
      const LeafId carried = leaves_.canonical(loop_, k);
      if (HasTrait(module_.instr(sum).opcode, kReplacesPart)) {
        // The part is one that nothing has read before.
        const LeafId replaced = leaves_.canonical(module_.operand(sum, 0));
        if (replaced == carried && Uses(carried) == 1 && Uses(last) == 1) {
          out->stacks[sum] = {loop_, k, InstrId()};
        }
        continue;
      }
      if (!HasTrait(module_.instr(sum).opcode, kAddsOperands)) continue;
      if (IsCounted(sum, carried)) continue;
      Accumulator found{loop_, k, {}};
      // What is carried is read once, and the end of the body reads the sum.
      if (!Reaches(sum, carried, kMostSteps, &found.steps)) continue;
      if (Uses(carried) == 1 && Uses(last) == 1) out->sums[sum] = std::move(found);
    }
  }

 private:
  static constexpr int kMostSteps = 4;

  // A counter: no sum over devices, and every loop has one.
  bool IsCounted(InstrId sum, LeafId carried) const {
    for (int operand = 0; operand < 2; ++operand) {
      if (leaves_.canonical(module_.operand(sum, operand)) == carried &&
          module_.instr(module_.operand(sum, 1 - operand)).opcode == Opcode::kConstant) {
        return true;
      }
    }
    return false;
  }

  // Whether the op adds to what is carried, or scales it, maybe after others did, of which each is
  // read once. Appends the steps.
  bool Reaches(InstrId op, LeafId carried, int most, std::vector<Accumulator::Step>* steps) {
    const Instruction& instr = module_.instr(op);
    if (most == 0 || !HasTrait(instr.opcode, kElementwise)) return false;
    const bool adds = HasTrait(instr.opcode, kAddsOperands);
    const auto operands = module_.operands(op);
    for (int k = 0; k < static_cast<int>(operands.size()); ++k) {
      if (!adds && !PassesSum(module_, op, k, products_)) continue;
      const LeafId leaf = leaves_.canonical(operands[k]);
      const bool reached =
          leaf == carried || (Uses(leaf) == 1 && leaves_.index(leaf) == 0 &&
                              Reaches(leaves_.instr(leaf), carried, most - 1, steps));
      if (!reached) continue;
      steps->push_back({op, k});
      return true;
    }
    return false;
  }

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

  const PassedProducts products_;
  const Module& module_;
  const LeafTable& leaves_;
  const InstrId loop_;
  const WhileAttrs& attrs_;
  absl::flat_hash_map<LeafId, int> uses_;
};

// Keeps the stacks of which one get-tuple-element alone reads the result, and notes it.
void FindResults(const Module& module, Accumulators* found) {
  if (found->stacks.empty()) return;
  absl::flat_hash_map<std::pair<InstrId, int>, InstrId> ops;  // by loop and leaf
  absl::flat_hash_map<InstrId, bool> whole;  // by loop: whether others read its results
  for (const auto& [op, stack] : found->stacks) {
    ops[{stack.loop, stack.leaf}] = op;
    whole[stack.loop] = absl::c_any_of(module.instr(stack.loop).shape->tuple(),
                                       [](const Shape* s) { return s->IsTuple(); });
  }
  absl::flat_hash_map<InstrId, int> readers;  // by op: of its stack
  for (uint32_t i = 0; i < module.num_instructions(); ++i) {
    const InstrId id(i);
    const bool element = module.instr(id).opcode == Opcode::kGetTupleElement;
    for (InstrId o : module.operands(id)) {
      const auto loop = whole.find(o);
      if (loop == whole.end()) continue;
      loop->second = loop->second || !element;
      if (!element) continue;
      const auto op = ops.find({o, static_cast<int>(module.instr(id).as<TupleIndexAttrs>().index)});
      if (op == ops.end()) continue;
      ++readers[op->second];
      found->stacks[op->second].result = id;
    }
  }
  for (int c = 0; c < module.num_computations(); ++c) {
    const auto loop = whole.find(module.comp(CompId(c)).root);
    if (loop != whole.end()) loop->second = true;
  }
  absl::erase_if(found->stacks, [&](const auto& entry) {
    return whole[entry.second.loop] || readers[entry.first] != 1;
  });
  for (const auto& [op, stack] : found->stacks) found->stack_ops[stack.result] = op;
}

}  // namespace

Accumulators FindAccumulators(const Program& program, PassedProducts products) {
  Accumulators out;
  for (InstrId loop : LoopsWithOwnBody(program.module))
    LoopSearch(program, loop, products).Find(&out);
  FindResults(program.module, &out);
  return out;
}

}  // namespace internal
}  // namespace shardcall
