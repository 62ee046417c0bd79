// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/import/leaf_table.h"

#include "shardcall/partitioner/ir/analysis/output_aliasing.h"

namespace shardcall {
namespace {

// Gives the parameter of a loop's computation the leaves of the loop's result.
void AliasParameter(const Module& module, CompId comp, const std::vector<uint32_t>& first,
                    uint32_t loop, std::vector<uint32_t>* canonical) {
  for (InstrId p : module.comp(comp).parameters) {
    if (!p.valid()) continue;
    const int n = module.instr(p).shape->num_leaves();
    for (int k = 0; k < n; ++k) (*canonical)[first[p.value] + k] = (*canonical)[loop + k];
  }
}

}  // namespace

LeafTable BuildLeafTable(const Module& module) {
  LeafTable table;
  const int n = module.num_instructions();
  table.first_.resize(n);
  uint32_t next = 0;
  for (int i = 0; i < n; ++i) {
    table.first_[i] = next;
    next += module.instr(InstrId(i)).shape->num_leaves();
  }
  table.canonical_.resize(next);
  table.owner_.resize(next);
  for (int i = 0; i < n; ++i) {
    const uint32_t end = i + 1 < n ? table.first_[i + 1] : next;
    for (uint32_t l = table.first_[i]; l < end; ++l) {
      table.canonical_[l] = l;
      table.owner_[l] = InstrId(i);
    }
  }

  // Loops first, because a body may come before its loop. Two loops that share a body both alias
  // its parameter, so the later one joins the first.
  for (int i = 0; i < n; ++i) {
    const Instruction& instr = module.instr(InstrId(i));
    if (instr.opcode != Opcode::kWhile) continue;
    const WhileAttrs& loop = instr.as<WhileAttrs>();
    const std::vector<InstrId>& parameters = module.comp(loop.body).parameters;
    const uint32_t first = table.first_[i];
    if (!parameters.empty()) {
      const uint32_t shared = table.first_[parameters[0].value];
      for (int k = 0; k < instr.shape->num_leaves(); ++k) {
        if (table.canonical_[shared + k] != shared + k) {
          table.canonical_[first + k] = table.canonical_[shared + k];
        }
      }
    }
    AliasParameter(module, loop.body, table.first_, first, &table.canonical_);
    AliasParameter(module, loop.condition, table.first_, first, &table.canonical_);
  }

  // Operands precede users in a computation, so one pass in order suffices.
  for (int c = 0; c < module.num_computations(); ++c) {
    for (InstrId id : module.comp(CompId(c)).instructions) {
      const Instruction& instr = module.instr(id);
      const uint32_t first = table.first_[id.value];
      if (instr.opcode == Opcode::kTuple) {
        uint32_t at = first;
        for (InstrId operand : module.operands(instr)) {
          const int leaves = module.instr(operand).shape->num_leaves();
          for (int k = 0; k < leaves; ++k) {
            table.canonical_[at++] = table.canonical_[table.first_[operand.value] + k];
          }
        }
      } else if (instr.opcode == Opcode::kGetTupleElement || instr.opcode == Opcode::kOptBarrier) {
        const InstrId operand = module.operands(instr)[0];
        uint32_t from = table.first_[operand.value];
        if (instr.opcode == Opcode::kGetTupleElement) {
          from += FirstLeafAt(module.instr(operand).shape, {instr.as<TupleIndexAttrs>().index});
        }
        for (int k = 0; k < instr.shape->num_leaves(); ++k) {
          table.canonical_[first + k] = table.canonical_[from + k];
        }
      }
    }
  }
  return table;
}

}  // namespace shardcall
