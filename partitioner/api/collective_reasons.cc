// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/collective_reasons.h"

#include <algorithm>

#include "shardcall/partitioner/import/value_flow.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/opcode.h"

namespace shardcall {
inline namespace internal {

bool CollectiveReasons::IsGiven(const CollectiveRecord& r) const {
  const InstrId id = r.cause.consumer;
  if (!HasTrait(program_.module.instr(id).opcode, kControlFlow)) return false;
  // A loop may be the root itself. What it carries is not moved to what it has.
  const absl::Span<const Sharding* const> given = plan_.ops[id.value].decision->operands;
  const size_t index = static_cast<size_t>(r.cause.index);
  return index < given.size() && given[index] == r.to;
}

LeafId CollectiveReasons::MovedLeaf(const CollectiveRecord& r) {
  if (!r.cause.consumer.valid()) return LeafId();
  const bool carried = r.cause.kind == CollectiveCause::Kind::kCarry;
  if (r.cause.kind == CollectiveCause::Kind::kResult || (carried && !IsGiven(r))) {
    return program_.leaves.leaf(r.cause.consumer, r.cause.index);
  }
  if (!carried && r.cause.kind != CollectiveCause::Kind::kOperand) return LeafId();
  if (consumer_ != r.cause.consumer) {
    consumer_ = r.cause.consumer;
    operands_ = OperandLeaves(program_, consumer_);
  }
  const size_t index = static_cast<size_t>(r.cause.index);
  return index < operands_.size() ? operands_[index] : LeafId();
}

LeafId CollectiveReasons::SummedBefore(LeafId sum) const {
  const LeafTable& leaves = program_.leaves;
  const auto waits = [](const Sharding* s) { return s != nullptr && !s->partial().empty(); };
  const InstrId loop = leaves.instr(sum);
  if (plan_.ops[loop.value].kind == PlanKind::kWhile) {
    const int k = leaves.index(sum);
    if (!waits(plan_.ops[loop.value].decision->produced[k])) return LeafId();
    const Module& m = program_.module;
    return leaves.leaf(m.comp(m.instr(loop).as<WhileAttrs>().body).root, k);
  }
  const InstrId id = leaves.instr(leaves.canonical(sum));
  const OpPlan& op = plan_.ops[id.value];
  if (op.kind != PlanKind::kRule || op.decision == nullptr) return LeafId();
  const auto operands = OperandLeaves(program_, id);
  for (size_t k = 0; k < std::min(operands.size(), op.decision->operands.size()); ++k) {
    // What an iteration begins with is the sum of those before it.
    const InstrId made = leaves.instr(leaves.canonical(operands[k]));
    const PlanKind kind = plan_.ops[made.value].kind;
    if (kind == PlanKind::kParameter || kind == PlanKind::kWhile) continue;
    if (waits(op.decision->operands[k])) return operands[k];
  }
  return LeafId();
}

std::string CollectiveReasons::WhySharded(const CollectiveRecord& r) {
  LeafId leaf = MovedLeaf(r);
  if (!leaf.valid()) return "";
  if (r.cause.kind == CollectiveCause::Kind::kResult) {
    for (LeafId before = leaf; before.valid(); before = SummedBefore(leaf)) leaf = before;
  }
  return reasons_.Of(leaf);
}

InstrId CollectiveReasons::LoopThatEndsWith(InstrId root) {
  const Module& m = program_.module;
  if (!loop_of_.has_value()) {
    loop_of_.emplace();
    for (const InstrId loop : LoopsWithOwnBody(m)) {
      loop_of_->emplace(m.comp(m.instr(loop).as<WhileAttrs>().body).root, loop);
    }
  }
  const auto it = loop_of_->find(root);
  return it == loop_of_->end() ? InstrId() : it->second;
}

LeafId CollectiveReasons::WantedLeaf(const CollectiveRecord& r) {
  const InstrId id = r.cause.consumer;
  if (!id.valid()) return LeafId();
  if (r.cause.kind == CollectiveCause::Kind::kOperand) {
    return program_.module.instr(id).shape->num_leaves() == 0 ? LeafId() : program_.leaves.leaf(id);
  }
  if (r.cause.kind != CollectiveCause::Kind::kCarry) return LeafId();
  const InstrId loop = IsGiven(r) ? id : LoopThatEndsWith(id);
  return loop.valid() && program_.module.instr(loop).opcode == Opcode::kWhile
             ? program_.leaves.leaf(loop, r.cause.index)
             : LeafId();
}

std::string CollectiveReasons::WhyWanted(const CollectiveRecord& r) {
  const LeafId result = WantedLeaf(r);
  if (!result.valid()) return "";
  const Sharding* const has = shardings_.sharding[result.value];
  if (r.from == nullptr || r.to == nullptr || has == nullptr || r.from->rank() != r.to->rank() ||
      !r.from->HasShardedDim() || r.from->mesh() != r.to->mesh() || has->mesh() != r.to->mesh()) {
    return "";
  }
  const BaseMesh& mesh = *r.to->mesh();
  AxisList taken, of_result;
  for (int d = 0; d < r.to->rank(); ++d) {
    const AxisList more = Minus(mesh, r.to->dim(d), r.from->dim(d));
    taken.insert(taken.end(), more.begin(), more.end());
  }
  for (int d = 0; d < has->rank(); ++d) {
    of_result.insert(of_result.end(), has->dim(d).begin(), has->dim(d).end());
  }
  return taken.empty() || !Minus(mesh, taken, of_result).empty() ? "" : reasons_.Of(result);
}

}  // namespace internal
}  // namespace shardcall
