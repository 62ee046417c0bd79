// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/collective_reasons.h"

#include <algorithm>

#include "shardcall/partitioner/import/value_flow.h"

namespace shardcall {
inline namespace internal {

LeafId CollectiveReasons::MovedLeaf(const CollectiveRecord& r) {
  if (!r.cause.consumer.valid()) return LeafId();
  if (r.cause.kind == CollectiveCause::Kind::kResult) {
    return program_.leaves.leaf(r.cause.consumer, r.cause.index);
  }
  if (r.cause.kind != CollectiveCause::Kind::kOperand) return LeafId();
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

std::string CollectiveReasons::WhyWanted(const CollectiveRecord& r) {
  if (r.cause.kind != CollectiveCause::Kind::kOperand || !r.cause.consumer.valid()) return "";
  if (program_.module.instr(r.cause.consumer).shape->num_leaves() == 0) return "";
  const LeafId result = program_.leaves.leaf(r.cause.consumer);
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
