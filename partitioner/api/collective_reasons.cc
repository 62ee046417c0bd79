// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/collective_reasons.h"

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
    operands_.clear();
    for (InstrId o : program_.module.operands(consumer_)) {
      const int n = program_.module.instr(o).shape->num_leaves();
      for (int k = 0; k < n; ++k) operands_.push_back(program_.leaves.leaf(o, k));
    }
  }
  const size_t index = static_cast<size_t>(r.cause.index);
  return index < operands_.size() ? operands_[index] : LeafId();
}

LeafId CollectiveReasons::BeganAs(LeafId sum) const {
  const Module& m = program_.module;
  const LeafTable& leaves = program_.leaves;
  const auto waits = [](const Sharding* s) { return s != nullptr && !s->partial().empty(); };
  while (true) {
    const InstrId loop = leaves.instr(sum);
    if (plan_.ops[loop.value].kind == PlanKind::kWhile) {
      const int k = leaves.index(sum);
      if (!waits(plan_.ops[loop.value].decision->produced[k])) return sum;
      sum = leaves.leaf(m.comp(m.instr(loop).as<WhileAttrs>().body).root, k);
      continue;
    }
    const InstrId id = leaves.instr(leaves.canonical(sum));
    const OpPlan& op = plan_.ops[id.value];
    if (op.kind != PlanKind::kRule || op.decision == nullptr) return sum;
    LeafId before;
    size_t at = 0;
    for (InstrId o : m.operands(id)) {
      const int n = m.instr(o).shape->num_leaves();
      for (int k = 0; k < n && at < op.decision->operands.size(); ++k, ++at) {
        const LeafId leaf = leaves.leaf(o, k);
        // What an iteration begins with is the sum of those before it.
        const PlanKind made = plan_.ops[leaves.instr(leaves.canonical(leaf)).value].kind;
        if (made == PlanKind::kParameter || made == PlanKind::kWhile) continue;
        if (!before.valid() && waits(op.decision->operands[at])) before = leaf;
      }
    }
    if (!before.valid()) return sum;
    sum = before;
  }
}

std::string CollectiveReasons::WhySharded(const CollectiveRecord& r) {
  const LeafId leaf = MovedLeaf(r);
  if (!leaf.valid()) return "";
  return reasons_.Of(r.cause.kind == CollectiveCause::Kind::kResult ? BeganAs(leaf) : leaf);
}

}  // namespace internal
}  // namespace shardcall
