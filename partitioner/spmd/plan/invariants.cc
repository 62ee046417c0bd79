// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/invariants.h"

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/partitioner/ir/analysis/trip_count.h"

namespace shardcall {
inline namespace internal {

Invariants::Invariants(const Program& program, const PlanTable& table, double trip_count)
    : program_(program) {
  if (program.num_partitions == 1) return;
  // A body that several loops share stays as it is.
  for (const InstrId id : LoopsWithOwnBody(program.module)) {
    const double runs = RunsOfComputations(program.module, id, trip_count);
    if (runs > 1) AddLoop(table, id, 1 / runs);
  }
}

void Invariants::AddLoop(const PlanTable& table, InstrId loop, double share) {
  const Module& m = program_.module;
  const LeafTable& leaves = program_.leaves;
  const CompId comp = m.instr(loop).as<WhileAttrs>().body;
  const Computation& body = m.comp(comp);
  const auto add = [&](LeafId leaf, const Shape* shape, const Sharding* s) {
    unchanged_[leaf.value] = comp;
    if (s == nullptr || s->is_maximal()) return;
    const int64_t bytes = s->HasShardedDim() ? shape->byte_size() : 0;
    if (bytes > 0) {
      if (!table.HasRoomForLoops(bytes_ + bytes)) return;
      bytes_ += bytes;
    }
    shares_[leaf.value] = {comp, bytes > 0 ? share : 1};
  };
  shares_.resize(leaves.num_leaves());
  unchanged_.resize(leaves.num_leaves());
  bool any = false;
  for (int k = 0; k < m.instr(loop).shape->num_leaves(); ++k) {
    const LeafId leaf = leaves.canonical(loop, k);
    if (leaves.canonical(body.root, k) != leaf) continue;
    add(leaf, m.instr(loop).shape->leaf(k), table.Wanted(loop, k));
    any = true;
  }
  if (!any) return;
  for (const InstrId id : body.instructions) {
    const Instruction& instr = m.instr(id);
    if (!instr.shape->IsArray() || !IsPure(instr.opcode) || m.operands(id).empty() ||
        HasSideEffect(instr, EffectsAt::kPartitioning)) {
      continue;
    }
    const LeafId leaf = leaves.canonical(id, 0);
    const bool follows = absl::c_all_of(m.operands(id), [&](InstrId o) {
      return m.instr(o).shape->IsArray() &&
             (m.instr(o).opcode == Opcode::kConstant || Has(comp, leaves.canonical(o, 0)));
    });
    if (!follows) continue;
    if (table.HasRoomForLoops(bytes_ + instr.shape->byte_size())) ops_[comp].push_back({id, share});
    if (!unchanged_[leaf.value].valid()) add(leaf, instr.shape, table.Wanted(id, 0));
  }
}

bool Invariants::Has(CompId comp, LeafId leaf) const {
  return !unchanged_.empty() && unchanged_[leaf.value] == comp;
}

Invariants::OpShares Invariants::OpsOf(CompId comp) const {
  const auto it = ops_.find(comp);
  return it == ops_.end() ? OpShares() : it->second;
}

Invariants::Shares Invariants::OfOperands(InstrId op) const {
  Shares out;
  if (shares_.empty()) return out;
  const Module& m = program_.module;
  const CompId comp = m.instr(op).computation;
  int flat = 0;
  for (const InstrId o : m.operands(op)) {
    for (int k = 0; k < m.instr(o).shape->num_leaves(); ++k, ++flat) {
      const Share& of = shares_[program_.leaves.canonical(o, k).value];
      if (of.body != comp || of.share == 1) continue;
      out.resize(flat + 1, 1);
      out[flat] = of.share;
    }
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
