// SPDX-License-Identifier: Apache-2.0
// Parameters, loops, branches, barriers and region boundaries.
#include "shardcall/partitioner/import/boundary_states.h"
#include "shardcall/partitioner/import/export.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/spmd/localize/localizer.h"

namespace shardcall {
inline namespace internal {

void Localizer::LocalizeParameter(InstrId id, const Decision& d) {
  const Instruction& instr = global_.instr(id);
  Instruction copy = instr;
  copy.sharding = nullptr;
  copy.frontend = instr.computation == global_.entry()
                      ? stated_.OfValue(instr.frontend, instr.shape, d.final)
                      : WithoutSdy(context_, instr.frontend);
  copy.shape = LocalShapeOf(instr.shape, d.final);
  copy.extra = -1;
  const InstrId local_id = local().Add(builder().computation(), copy, {});
  const LocalIds leaves = ops_.Flatten(local_id);
  for (size_t k = 0; k < leaves.size(); ++k) {
    Store(id, static_cast<int>(k), leaves[k], d.final[k]);
  }
}

void Localizer::LocalizeBarrier(InstrId id, const Decision& d) {
  const Instruction& instr = global_.instr(id);
  if (instr.opcode == Opcode::kAddDependency) {
    // add-dependency: the token only orders; the value is that of the operand.
    const auto [value, state] = Stored(global_.operand(id, 0), 0);
    const auto [token, none] = Stored(global_.operand(id, 1), 0);
    const InstrId r = builder().Add(Opcode::kAddDependency, {value, token});
    Store(id, 0, r, state);
    return;
  }
  LocalIds leaves;
  for (InstrId o : global_.operands(id)) {
    for (int k = 0; k < global_.instr(o).shape->num_leaves(); ++k) {
      leaves.push_back(Stored(o, k).first);
    }
  }
  if (instr.opcode == Opcode::kAfterAll) {
    Store(id, 0, builder().Add(Opcode::kAfterAll, leaves), nullptr);
    return;
  }
  const InstrId barrier = builder().OptBarrier(ops_.Assemble(instr.shape, leaves));
  const LocalIds out = ops_.Flatten(barrier);
  for (size_t k = 0; k < out.size(); ++k) {
    // Storing the value anew drops its copies under other shardings: they were made before the
    // barrier, and must not be used after it.
    Store(id, static_cast<int>(k), out[k], d.final[k]);
  }
}

void Localizer::LocalizePassThrough(InstrId id, const Decision& d) {
  LocalIds produced;
  int flat = 0;
  for (InstrId o : global_.operands(id)) {
    for (int k = 0; k < global_.instr(o).shape->num_leaves(); ++k, ++flat) {
      produced.push_back(Get(o, k, d.operands[flat], {CollectiveCause::Kind::kOperand, id, flat}));
    }
  }
  StoreResults(id, d, produced);
  if (plan_.ops[id.value].kind == PlanKind::kBoundary) AddCopiesAcross(id, d);
  if (plan_.ops[id.value].kind != PlanKind::kIdentity) return;
  // An annotated value is its operand, so the operand's copies under other shardings hold for it.
  for (int k = 0; k < static_cast<int>(produced.size()); ++k) {
    if (d.produced[k] != nullptr) TakeCopies(id, global_.operand(id, 0), k, d.produced[k]);
  }
}

void Localizer::LocalizeEqual(InstrId id, const Decision& d) {
  const InstrId from = plan_.equal.at(id);
  for (int k = 0; k < static_cast<int>(d.final.size()); ++k) {
    const CollectiveCause cause{CollectiveCause::Kind::kResult, id, k};
    Store(id, k, GetFromCopies(from, k, d.final[k], cause), d.final[k]);
    TakeCopies(id, from, k, d.final[k]);
  }
}

void Localizer::TakeCopies(InstrId id, InstrId from, int k, const Sharding* state) {
  const LeafId leaf = leaves_.canonical(from, k), now = leaves_.canonical(id, k);
  const Value stored = values_[leaf.value];
  if (stored.state != state) AddCopy(now, stored.id, stored.state);
  const CopyList* known = CopiesOf(leaf);
  const CopyList copies = known != nullptr ? *known : CopyList();
  for (const Value& copy : copies) {
    if (copy.state != state) AddCopy(now, copy.id, copy.state);
  }
}

// What a device has of a value outside of a manual region, in any state, it has inside, too.
void Localizer::AddCopiesAcross(InstrId id, const Decision& d) {
  const auto operands = global_.operands(id);
  if (operands.size() != d.final.size()) return;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (d.produced[k] == nullptr || generated_[operands[k].value]) continue;
    const int flat = static_cast<int>(k);
    const LeafId now = leaves_.canonical(id, flat), from = leaves_.canonical(operands[k], 0);
    const auto add = [&](const Value& value) {
      const Sharding* const across =
          AcrossBoundary(program_, id, flat, d.operands[k], d.produced[k], value.state);
      if (across != nullptr && across != d.final[k]) AddCopy(now, value.id, across);
    };
    add(values_[from.value]);
    const CopyList* known = CopiesOf(from);
    const CopyList copies = known != nullptr ? *known : CopyList();
    for (const Value& copy : copies) add(copy);
  }
}

void Localizer::LocalizeControlFlow(InstrId id, const Decision& d) {
  const Instruction& instr = global_.instr(id);
  LocalIds operands;
  int flat = 0;
  for (InstrId o : global_.operands(id)) {
    const Shape* shape = global_.instr(o).shape;
    LocalIds leaves;
    for (int k = 0; k < shape->num_leaves(); ++k, ++flat) {
      leaves.push_back(Get(o, k, d.operands[flat], {CollectiveCause::Kind::kCarry, id, flat}));
    }
    operands.push_back(ops_.Assemble(shape, leaves));
  }
  Instruction copy = instr;
  copy.sharding = nullptr;
  copy.frontend = stated_.OfValue(instr.frontend, instr.shape, d.produced);
  copy.shape = LocalShapeOf(instr.shape, d.produced);
  copy.extra = -1;
  copy.attrs = MapComputations(global_, instr, [&](CompId c) { return LocalComputation(c); });
  const InstrId r = local().Add(builder().computation(), copy, operands);
  StoreResults(id, d, ops_.Flatten(r));
}

std::vector<const Sharding*> Localizer::RootStates(CompId comp) const {
  if (comp == global_.entry()) return plan_.outputs;
  const InstrId caller = caller_[comp.value];
  const Instruction& instr = global_.instr(caller);
  const Decision& d = *plan_.ops[caller.value].decision;
  if (instr.opcode == Opcode::kWhile && comp == instr.as<WhileAttrs>().condition) {
    // All devices must take the same branch, except that manual coordinates may differ.
    return {ReplicatedSharding(context_, program_.mesh, 0,
                               program_.manual_axes(global_.comp(comp).root))};
  }
  return std::vector<const Sharding*>(d.produced.begin(), d.produced.end());
}

}  // namespace internal
}  // namespace shardcall
