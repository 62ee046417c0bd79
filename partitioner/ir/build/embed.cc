// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/embed.h"

#include <vector>

#include "shardcall/partitioner/ir/build/unique_names.h"
#include "shardcall/partitioner/ir/called_computations.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

CompId EmbedComputations(const Module& from, Module* into) {
  SHARDCALL_CHECK(&from.context() == &into->context());
  for (const auto& text : from.texts()) into->KeepText(text);
  std::vector<CompId> comps(from.num_computations());
  std::vector<InstrId> instrs(from.num_instructions());
  for (CompId c : ComputationPostOrder(from)) {
    const Computation& old = from.comp(c);
    const CompId made = comps[c.value] = AddNamedComputation(old.name, into);
    into->mutable_comp(made).execution_thread = old.execution_thread;
    for (InstrId id : old.instructions) {
      Instruction copy = from.instr(id);
      copy.attrs = MapComputations(from, copy, [&](CompId k) { return comps[k.value]; });
      std::vector<InstrId> operands;
      for (InstrId o : from.operands(id)) operands.push_back(instrs[o.value]);
      instrs[id.value] = into->Add(made, copy, operands);
      if (const RareAttributes* rare = from.rare(copy); rare != nullptr) {
        RareAttributes& mine = into->mutable_rare(instrs[id.value]) = *rare;
        for (InstrId& before : mine.control_predecessors) before = instrs[before.value];
      }
    }
    into->SetRoot(made, instrs[old.root.value]);
  }
  return comps[from.entry().value];
}

}  // namespace shardcall
