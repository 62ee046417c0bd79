// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/localize/control_edges.h"

#include <set>

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/known_targets.h"

namespace shardcall::inline internal {
namespace {

// What has the value of an instruction that computes nothing, so that there may be nothing to emit.
absl::Span<const InstrId> HandedOn(const Module& m, InstrId id) {
  const Instruction& instr = m.instr(id);
  if (instr.opcode == Opcode::kGetTupleElement &&
      m.instr(m.operand(id, 0)).opcode == Opcode::kTuple) {
    const auto k = static_cast<size_t>(instr.as<TupleIndexAttrs>().index);
    return m.operands(m.operand(id, 0)).subspan(k, 1);
  }
  const bool computes_nothing = instr.opcode == Opcode::kGetTupleElement ||
                                instr.opcode == Opcode::kTuple ||
                                HasTrait(KnownTargetOf(instr), kIsIdentity);
  return computes_nothing ? m.operands(id) : absl::Span<const InstrId>();
}

}  // namespace

ControlEdges::ControlEdges(const Module& global, Module* local) : global_(global), local_(*local) {
  for (int i = 0; i < global_.num_instructions(); ++i) {
    const RareAttributes* rare = global_.rare(global_.instr(InstrId(i)));
    if (rare == nullptr || rare->control_predecessors.empty()) continue;
    Track(InstrId(i));
    for (InstrId p : rare->control_predecessors) Track(p);
  }
}

void ControlEdges::Track(InstrId id) {
  std::vector<InstrId> open = {id};
  while (!open.empty()) {
    const InstrId next = open.back();
    open.pop_back();
    if (!emitted_.try_emplace(next).second) continue;
    for (InstrId source : HandedOn(global_, next)) open.push_back(source);
  }
}

// Control dependencies attach to the emitted op itself, and not to the moves before and after it.
// An instruction without emitted ops passes on its predecessors, and what computes its value.
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
  } else {
    std::set<InstrId> passed_on;
    const auto pass_on = [&](absl::Span<const InstrId> from) {
      for (InstrId p : from) passed_on.insert(emitted_.at(p).begin(), emitted_.at(p).end());
    };
    if (const RareAttributes* rare = global_.rare(global_.instr(id))) {
      pass_on(rare->control_predecessors);
    }
    pass_on(HandedOn(global_, id));
    it->second.assign(passed_on.begin(), passed_on.end());
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
