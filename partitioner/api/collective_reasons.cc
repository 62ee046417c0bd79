// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/collective_reasons.h"

#include <algorithm>

#include "shardcall/partitioner/import/value_flow.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/opcode.h"

namespace shardcall {
namespace {

// The axes that dimensions of `to` have and those of `from` have not, both of one mesh.
AxisList TakenAxes(const Sharding& from, const Sharding& to) {
  AxisList taken;
  for (int d = 0; d < to.rank(); ++d) {
    const AxisList more = Minus(*to.mesh(), to.dim(d), from.dim(d));
    taken.insert(taken.end(), more.begin(), more.end());
  }
  return taken;
}

// The axes of all dimensions.
AxisList DimAxes(const Sharding& s) {
  AxisList axes;
  for (int d = 0; d < s.rank(); ++d) axes.insert(axes.end(), s.dim(d).begin(), s.dim(d).end());
  return axes;
}

}  // namespace

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
    if (r.from != nullptr && !r.from->partial().empty()) {
      if (std::string why = WhySummed(leaf, *r.from); !why.empty()) return why;
    }
  }
  return reasons_.Of(leaf);
}

std::string CollectiveReasons::WhySummed(LeafId sum, const Sharding& from) {
  const InstrId id = program_.leaves.instr(program_.leaves.canonical(sum));
  const OpPlan& op = plan_.ops[id.value];
  if (op.kind != PlanKind::kRule || op.decision == nullptr) return "";
  const AxisList summed(from.partial().begin(), from.partial().end());
  const auto is_over = [&](const Sharding* s, int d) {
    return s != nullptr && s->mesh() == from.mesh() &&
           Minus(*from.mesh(), summed, s->dim(d)) != summed;
  };
  const auto operands = OperandLeaves(program_, id);
  for (size_t k = 0; k < std::min(operands.size(), op.decision->operands.size()); ++k) {
    const Sharding* const taken = op.decision->operands[k];
    const Sharding* const has = shardings_.sharding[operands[k].value];
    for (int d = 0; taken != nullptr && d < taken->rank(); ++d) {
      if (is_over(taken, d) && is_over(has, d)) return reasons_.OfDim(operands[k], d);
    }
  }
  return "";
}

std::string CollectiveReasons::WhyScattered(LeafId sum, const AxisList& taken) {
  const Sharding* const has = shardings_.sharding[sum.value];
  const bool has_them = has != nullptr && Minus(*has->mesh(), taken, DimAxes(*has)).empty();
  return has_them ? reasons_.Of(sum) : "all that read it take no more than their shards";
}

InstrId CollectiveReasons::OpThatEndsWith(InstrId root) {
  const Module& m = program_.module;
  if (!ends_with_.has_value()) {
    ends_with_.emplace();
    for (const InstrId loop : LoopsWithOwnBody(m)) {
      ends_with_->emplace(m.comp(m.instr(loop).as<WhileAttrs>().body).root, loop);
    }
    for (int n = 0; n < m.num_instructions(); ++n) {
      const Instruction& instr = m.instr(InstrId(n));
      if (instr.opcode != Opcode::kConditional) continue;
      for (const CompId branch : CalledComputations(m, instr)) {
        ends_with_->emplace(m.comp(branch).root, InstrId(n));
      }
    }
  }
  const auto it = ends_with_->find(root);
  return it == ends_with_->end() ? InstrId() : it->second;
}

LeafId CollectiveReasons::WantedLeaf(const CollectiveRecord& r) {
  const InstrId id = r.cause.consumer;
  if (!id.valid()) return LeafId();
  if (r.cause.kind == CollectiveCause::Kind::kOperand) {
    return program_.module.instr(id).shape->num_leaves() == 0 ? LeafId() : program_.leaves.leaf(id);
  }
  if (r.cause.kind != CollectiveCause::Kind::kCarry) return LeafId();
  const bool given = IsGiven(r);
  const InstrId op = given ? id : OpThatEndsWith(id);
  if (!op.valid() || (given && program_.module.instr(op).opcode != Opcode::kWhile)) return LeafId();
  return program_.leaves.leaf(op, r.cause.index);
}

std::string CollectiveReasons::WhyWanted(const CollectiveRecord& r) {
  if (r.cause.kind == CollectiveCause::Kind::kResult && r.from != nullptr &&
      !r.from->partial().empty() && r.to->mesh() == r.from->mesh()) {
    const AxisList taken = TakenAxes(*r.from, *r.to);
    return taken.empty() ? "" : WhyScattered(MovedLeaf(r), taken);
  }
  const LeafId result = WantedLeaf(r);
  if (!result.valid()) return "";
  const Sharding* const has = shardings_.sharding[result.value];
  if (r.from == nullptr || r.to == nullptr || has == nullptr || r.from->rank() != r.to->rank() ||
      !r.from->HasShardedDim() || r.from->mesh() != r.to->mesh() || has->mesh() != r.to->mesh()) {
    return "";
  }
  const BaseMesh& mesh = *r.to->mesh();
  const AxisList taken = TakenAxes(*r.from, *r.to);
  // A loop or a branch that keeps it whole says why.
  const bool whole = r.cause.kind == CollectiveCause::Kind::kCarry && !r.to->HasShardedDim() &&
                     !has->HasShardedDim();
  if (whole) return reasons_.Of(result);
  return taken.empty() || !Minus(mesh, taken, DimAxes(*has)).empty() ? "" : reasons_.Of(result);
}

}  // namespace internal
}  // namespace shardcall
