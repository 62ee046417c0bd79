// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/localize/control_edges.h"

namespace shardcall::inline internal {

ControlEdges::ControlEdges(const Module& global, Module* local) : global_(global), local_(*local) {
  for (int i = 0; i < global_.num_instructions(); ++i) {
    const RareAttributes* rare = global_.rare(global_.instr(InstrId(i)));
    if (rare == nullptr || rare->control_predecessors.empty()) continue;
    emitted_[InstrId(i)];
    for (InstrId p : rare->control_predecessors) emitted_[p];
  }
}

// Control dependencies attach to the emitted op itself, and not to the moves before and after it.
// An instruction without emitted ops passes on its predecessors.
void ControlEdges::NoteEmitted(InstrId id, CompId computation, int begin) {
  auto it = emitted_.find(id);
  if (it == emitted_.end()) return;
  InstrId last, same;
  for (int i = begin; i < local_.num_instructions(); ++i) {
    const Instruction& instr = local_.instr(InstrId(i));
    if (instr.computation != computation) continue;
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

void ControlEdges::Keep(CompId comp) {
  for (InstrId id : global_.comp(comp).instructions) {
    const RareAttributes* rare = global_.rare(global_.instr(id));
    if (rare == nullptr) continue;
    for (InstrId p : rare->control_predecessors) {
      for (InstrId before : emitted_.at(p)) {
        for (InstrId after : emitted_.at(id)) {
          if (before == after) continue;
          local_.mutable_rare(after).control_predecessors.push_back(before);
        }
      }
    }
  }
}

}  // namespace shardcall::inline internal
