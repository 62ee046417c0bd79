// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/propagation/leaf_uses.h"

#include "shardcall/partitioner/import/value_flow.h"

namespace shardcall {
inline namespace internal {

LeafUses::ByLeaf LeafUses::Sorted(absl::Span<const LeafUse> all, LeafId LeafUse::* key) const {
  ByLeaf out;
  out.begin.assign(program_.leaves.num_leaves() + 1, 0);
  for (const LeafUse& use : all) ++out.begin[(use.*key).value + 1];
  for (size_t l = 1; l < out.begin.size(); ++l) out.begin[l] += out.begin[l - 1];
  std::vector<uint32_t> next(out.begin.begin(), out.begin.end() - 1);
  out.uses.resize(all.size());
  for (const LeafUse& use : all) out.uses[next[(use.*key).value]++] = use;
  return out;
}

void LeafUses::Collect() {
  if (!uses_.begin.empty()) return;
  const Module& m = program_.module;
  const LeafTable& leaves = program_.leaves;
  std::vector<LeafUse> uses, entries;
  uses.reserve(2 * m.num_instructions());
  for (int k = 0; k < m.num_instructions(); ++k) {
    const InstrId id(k);
    const Opcode opcode = m.instr(id).opcode;
    // Their results are their operands.
    if (opcode == Opcode::kTuple || opcode == Opcode::kGetTupleElement ||
        opcode == Opcode::kOptBarrier) {
      continue;
    }
    if (HasTrait(opcode, kControlFlow)) {
      for (const ValueFlow& flow : ValueFlows(m, id)) {
        for (int f = 0; f < m.instr(flow.from).shape->num_leaves(); ++f) {
          const LeafUse use{leaves.canonical(flow.from, f), id, m.instr(flow.from).computation,
                            leaves.canonical(flow.to, f)};
          if (use.leaf == use.to) continue;
          uses.push_back(use);
          entries.push_back(use);
        }
      }
      continue;
    }
    int operand = 0;
    for (InstrId o : m.operands(id)) {
      const Shape* const shape = m.instr(o).shape;
      if (shape->IsArray() && shape->rank() == 0) {
        ++operand;
        continue;
      }
      for (int f = 0; f < shape->num_leaves(); ++f, ++operand) {
        uses.push_back({leaves.canonical(o, f), id, m.instr(id).computation, LeafId(), operand});
      }
    }
  }
  uses_ = Sorted(uses, &LeafUse::leaf);
  entries_ = Sorted(entries, &LeafUse::to);
}

}  // namespace internal
}  // namespace shardcall
