// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/localize/control_edges.h"

#include <set>

#include "absl/algorithm/container.h"

namespace shardcall {
inline namespace internal {

ControlEdges::ControlEdges(const Module& global, Module* local) : global_(global), local_(*local) {
  for (int i = 0; i < global_.num_instructions(); ++i) {
    const RareAttributes* rare = global_.rare(global_.instr(InstrId(i)));
    if (rare == nullptr || rare->control_predecessors.empty()) continue;
    ends_[InstrId(i)];
    for (InstrId p : rare->control_predecessors) ends_[p];
  }
}

// Control dependencies attach to the emitted op itself, and not to the moves before and after it.
// What waits for an instruction without emitted ops waits for the predecessors of that.
void ControlEdges::NoteEmitted(InstrId id, CompId computation, int begin) {
  const auto it = ends_.find(id);
  if (it == ends_.end()) return;
  InstrId last, same;
  for (int i = begin; i < local_.num_instructions(); ++i) {
    const Instruction& instr = local_.instr(InstrId(i));
    if (instr.computation != computation) continue;
    last = InstrId(i);
    if (instr.opcode == global_.instr(id).opcode) same = last;
  }
  Ends& ends = it->second;
  ends.waits = same.valid() ? same : last;
  if (ends.waits.valid()) {
    ends.waited_for = {ends.waits};
  } else {
    ends.waited_for = WaitedFor(id);
  }
}

std::vector<InstrId> ControlEdges::WaitedFor(InstrId id) const {
  const RareAttributes* rare = global_.rare(global_.instr(id));
  if (rare == nullptr) return {};
  std::set<InstrId> all;
  for (InstrId p : rare->control_predecessors) {
    const std::vector<InstrId>& before = ends_.at(p).waited_for;
    all.insert(before.begin(), before.end());
  }
  return {all.begin(), all.end()};
}

void ControlEdges::Keep(CompId comp) {
  for (InstrId id : global_.comp(comp).instructions) {
    const auto it = ends_.find(id);
    if (it == ends_.end() || !it->second.waits.valid()) continue;
    const InstrId after = it->second.waits;
    for (InstrId before : WaitedFor(id)) {
      // What was emitted later, for another instruction of the same value, cannot be waited for.
      // Operands are waited for anyway.
      if (before >= after || absl::c_linear_search(local_.operands(after), before)) continue;
      local_.mutable_rare(after).control_predecessors.push_back(before);
    }
  }
}

}  // namespace internal
}  // namespace shardcall
