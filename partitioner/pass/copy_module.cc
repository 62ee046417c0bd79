// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/pass/copy_module.h"

#include "shardcall/partitioner/ir/called_computations.h"

namespace shardcall {

PassResult BeginCopy(const Module& m, const std::vector<bool>& keep) {
  PassResult out((Module(m.shared_context())));
  out.moved_to.resize(m.num_instructions());
  out.comp_moved_to.resize(m.num_computations());
  out.module.Reserve(m.num_instructions(), 2 * m.num_instructions());
  out.module.header = m.header;
  for (const auto& text : m.texts()) out.module.KeepText(text);
  for (int c = 0; c < m.num_computations(); ++c) {
    if (!keep[c]) {
      out.changed = true;
      continue;
    }
    const Computation& from = m.comp(CompId(c));
    const CompId to = out.module.AddComputation(from.name);
    out.comp_moved_to[c] = to;
    out.module.mutable_comp(to).execution_thread = from.execution_thread;
    out.module.mutable_comp(to).instructions.reserve(from.instructions.size());
  }
  out.module.set_entry(out.comp_moved_to[m.entry().value]);
  return out;
}

Instruction CopyOf(const Module& m, InstrId id, const PassResult& out) {
  Instruction copy = m.instr(id);
  copy.attrs = MapComputations(m, copy, [&](CompId c) { return out.comp_moved_to[c.value]; });
  copy.extra = -1;
  return copy;
}

void CopyRare(const Module& m, InstrId from, InstrId to, PassResult* out) {
  const RareAttributes* rare = m.rare(m.instr(from));
  if (rare == nullptr) return;
  RareAttributes& r = out->module.mutable_rare(to);
  r = *rare;
  for (InstrId& p : r.control_predecessors) p = out->moved_to[p.value];
}

InstrId CopyInstruction(const Module& m, InstrId id, PassResult* out) {
  absl::InlinedVector<InstrId, 8> operands;
  for (InstrId o : m.operands(id)) operands.push_back(out->moved_to[o.value]);
  const CompId to = out->comp_moved_to[m.instr(id).computation.value];
  const InstrId now = out->module.Add(to, CopyOf(m, id, *out), operands);
  out->moved_to[id.value] = now;
  CopyRare(m, id, now, out);
  return now;
}

}  // namespace shardcall
