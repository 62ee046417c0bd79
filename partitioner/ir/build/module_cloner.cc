// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/module_cloner.h"

#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

ModuleCloner::ModuleCloner(const Module& from, Module* to)
    : from_(from), to_(*to), instrs_(from.num_instructions()), comps_(from.num_computations()) {
  SHARDCALL_CHECK(&from.context() == &to->context());
}

void ModuleCloner::KeepTexts() {
  for (const auto& text : from_.texts()) to_.KeepText(text);
}

void ModuleCloner::CopyHeader(size_t more) {
  to_.header = from_.header;
  KeepTexts();
  to_.Reserve(from_.num_instructions() + more, 2 * from_.num_instructions());
}

CompId ModuleCloner::AddComputation(CompId c) { return AddComputation(c, from_.comp(c).name); }

CompId ModuleCloner::AddComputation(CompId c, absl::string_view name) {
  const Computation& old = from_.comp(c);
  const CompId made = comps_[c.value] = to_.AddComputation(name);
  to_.mutable_comp(made).execution_thread = old.execution_thread;
  to_.mutable_comp(made).instructions.reserve(old.instructions.size());
  return made;
}

void ModuleCloner::SetRoot(CompId c) { to_.SetRoot(now(c), now(from_.comp(c).root)); }

Instruction ModuleCloner::CopyOf(InstrId id) const {
  Instruction copy = from_.instr(id);
  copy.attrs = MapComputations(from_, copy, [&](CompId c) { return now(c); });
  copy.extra = -1;
  return copy;
}

absl::InlinedVector<InstrId, 8> ModuleCloner::OperandsOf(InstrId id) const {
  absl::InlinedVector<InstrId, 8> operands;
  for (InstrId o : from_.operands(id)) operands.push_back(now(o));
  return operands;
}

InstrId ModuleCloner::Add(InstrId id, const Instruction& copy, absl::Span<const InstrId> operands,
                          CompId computation) {
  return instrs_[id.value] = to_.Add(computation, copy, operands);
}

namespace {
bool KeepsAll(InstrId) { return true; }
}  // namespace

std::vector<InstrId> ModuleCloner::NewPredecessors(const RareAttributes& rare, InstrId now,
                                                   absl::FunctionRef<bool(InstrId)> keeps) const {
  std::vector<InstrId> result;
  for (InstrId p : rare.control_predecessors) {
    if (!keeps(p)) continue;
    const InstrId before = instrs_[p.value];
    if (before.valid() && to_.instr(before).computation == to_.instr(now).computation) {
      result.push_back(before);
    }
  }
  return result;
}

void ModuleCloner::CopyOrder(InstrId id, InstrId now) {
  const RareAttributes* const rare = from_.rare(from_.instr(id));
  if (rare == nullptr) return;
  std::vector<InstrId> before = NewPredecessors(*rare, now, KeepsAll);
  if (!before.empty()) to_.mutable_rare(now).control_predecessors = std::move(before);
}

void ModuleCloner::CopyRare(InstrId id, InstrId now) { CopyRare(id, now, KeepsAll); }

void ModuleCloner::CopyRare(InstrId id, InstrId now, absl::FunctionRef<bool(InstrId)> keeps) {
  const RareAttributes* const rare = from_.rare(from_.instr(id));
  if (rare == nullptr) return;
  RareAttributes copy = *rare;
  copy.control_predecessors = NewPredecessors(*rare, now, keeps);
  to_.mutable_rare(now) = std::move(copy);
}

InstrId ModuleCloner::Clone(InstrId id) {
  const InstrId made = Add(id, CopyOf(id), OperandsOf(id), now(from_.instr(id).computation));
  CopyRare(id, made);
  return made;
}

void ModuleCloner::Replace(InstrId id, InstrId now) {
  const Instruction& from = from_.instr(id);
  Instruction& to = to_.mutable_instr(now);
  to.name = from.name;
  to.sharding = from.sharding;
  to.frontend = from.frontend;
  CopyRare(id, now);
  Set(id, now);
}

}  // namespace internal
}  // namespace shardcall
