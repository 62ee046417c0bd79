// SPDX-License-Identifier: Apache-2.0
// Control edges: what the program orders stays ordered.
#include "shardcall/partitioner/spmd/localize/localizer.h"

namespace shardcall {

void Localizer::FindControlled() {
  for (int i = 0; i < global_.num_instructions(); ++i) {
    const RareAttributes* rare = global_.rare(global_.instr(InstrId(i)));
    if (rare == nullptr || rare->control_predecessors.empty()) continue;
    emitted_[InstrId(i)];
    for (InstrId p : rare->control_predecessors) emitted_[p];
  }
}

// Of what an instruction became, the op itself stands at its control edges, and
// not the moves before and after it. What became nothing passes on its own
// predecessors.
void Localizer::NoteEmitted(InstrId id, int begin) {
  auto it = emitted_.find(id);
  if (it == emitted_.end()) return;
  const CompId here = builder().computation();
  InstrId last, same;
  for (int i = begin; i < local().num_instructions(); ++i) {
    const Instruction& instr = local().instr(InstrId(i));
    if (instr.computation != here) continue;
    last = InstrId(i);
    if (instr.opcode == global_.instr(id).opcode) same = last;
  }
  if (same.valid()) {
    it->second = {same};
  } else if (last.valid()) {
    it->second = {last};
  } else if (const RareAttributes* rare = global_.rare(global_.instr(id))) {
    for (InstrId p : rare->control_predecessors) {
      const std::vector<InstrId>& before = emitted_.at(p);
      it->second.insert(it->second.end(), before.begin(), before.end());
    }
  }
}

void Localizer::KeepControlEdges(CompId comp) {
  for (InstrId id : global_.comp(comp).instructions) {
    const RareAttributes* rare = global_.rare(global_.instr(id));
    if (rare == nullptr) continue;
    for (InstrId p : rare->control_predecessors) {
      for (InstrId before : emitted_.at(p)) {
        for (InstrId after : emitted_.at(id)) {
          if (before == after) continue;
          local().mutable_rare(after).control_predecessors.push_back(before);
        }
      }
    }
  }
}

}  // namespace shardcall
