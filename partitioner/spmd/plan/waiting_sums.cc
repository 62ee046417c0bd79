// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/waiting_sums.h"

#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/sharding/rule/factor_assignment.h"

namespace shardcall {
inline namespace internal {

bool WaitingSums::MayWait(InstrId id) const {
  if (id == root_ || !module_.instr(id).shape->IsArray() || table_.num_uses(id) != 1) return false;
  const Opcode user = module_.instr(table_.last_user(id)).opcode;
  return HasTrait(user, kAddsOperands) || HasTrait(user, kPassesSums);
}

const Decision* WaitingSums::OnPartial(InstrId id, const ShardingRule& rule, const Sharding* from,
                                       const Sharding* final) {
  Context& context = table_.context();
  const Sharding* dims = WithoutPartial(context, from);
  FactorAssignment a(rule, from->mesh(), program_.manual_axes(id), FactorsAllowedByRule(rule));
  a.Project(0, *dims);
  a.Normalize();
  States operands;
  for (int t = 0; t < static_cast<int>(rule.operands.size()); ++t) {
    if (a.DimSharding(context, t) != dims) return nullptr;
    operands.push_back(from);
  }
  ShardingBuilder made(*a.DimSharding(context, static_cast<int>(rule.operands.size())));
  made.partial.assign(from->partial().begin(), from->partial().end());
  made.partial_op = from->partial_op();
  const Sharding* const produced = made.Intern(context);
  if (final == nullptr) final = produced;
  Decision d;
  d.rule = &rule;
  const Instruction& instr = module_.instr(id);
  d.strategy = &StrategyOf(instr.opcode);
  if (a.mesh() != program_.mesh) d.mesh = a.mesh();
  absl::InlinedVector<absl::Span<const AxisRef>, 8> axes(a.axes().begin(), a.axes().end());
  d.factor_axes = axes;
  d.operands = operands;
  d.produced = absl::MakeConstSpan(&produced, 1);
  d.final = absl::MakeConstSpan(&final, 1);
  int collectives = 0;
  d.bytes = table_.ReshardBytes(instr.shape, produced, nullptr, final, &collectives);
  d.seconds =
      cost_.Seconds(d.bytes, collectives) + StrategySeconds(*d.strategy, cost_, module_, instr, d);
  return table_.Keep(d);
}

bool WaitingSums::PlanSum(InstrId id, const ShardingRule& rule) {
  const Instruction& instr = module_.instr(id);
  if (waiting_.empty() || !HasTrait(instr.opcode, kAddsOperands)) return false;
  const Sharding* state = nullptr;
  double seconds = 0;
  for (InstrId o : module_.operands(id)) {
    const auto found = waiting_.find(o.value);
    if (found == waiting_.end() || (state != nullptr && found->second.state != state)) return false;
    state = found->second.state;
    seconds += found->second.seconds;
  }
  const Decision* sum = OnPartial(id, rule, state, table_.WantedOfOp(id, 0));
  if (sum == nullptr || sum->seconds >= seconds) return false;
  for (InstrId o : module_.operands(id)) Wait(o);
  table_.Charge(sum->bytes, sum->seconds);
  table_.SetDecision(id, PlanKind::kRule, sum);
  table_.NoteCopies(id, PlanKind::kRule, *sum);
  return true;
}

void WaitingSums::Note(InstrId id, const ShardingRule& rule) {
  const OpPlan& op = table_.plan().ops[id.value];
  if (op.kind != PlanKind::kRule || op.decision->rule == nullptr || !MayWait(id)) return;
  const Decision& d = *op.decision;
  const Sharding* const produced = d.produced[0];
  if (!produced->partial().empty()) {
    if (produced->partial_op() != PartialOp::kSum || !d.final[0]->partial().empty()) return;
    int collectives = 0;
    const double bytes =
        table_.ReshardBytes(module_.instr(id).shape, produced, nullptr, d.final[0], &collectives);
    if (collectives > 0) {
      waiting_[id.value] = {produced, &rule, bytes, cost_.Seconds(bytes, collectives)};
    }
    return;
  }
  if (waiting_.empty() || !HasTrait(module_.instr(id).opcode, kPassesSums)) return;
  const auto operand = waiting_.find(module_.operand(id, 0).value);
  if (operand == waiting_.end()) return;
  const Waiting before = operand->second;
  const Decision* passed = OnPartial(id, rule, before.state, nullptr);
  if (passed == nullptr) return;
  waiting_[id.value] = {passed->produced[0], &rule, before.bytes + d.bytes - passed->bytes,
                        before.seconds + d.seconds - passed->seconds};
}

void WaitingSums::Wait(InstrId id) {
  const Waiting& w = waiting_.at(id.value);
  const Decision& now = *table_.plan().ops[id.value].decision;
  if (now.produced[0] == w.state) {
    Decision later = now;
    later.final = later.produced;
    int collectives = 0;
    const double bytes =
        table_.ReshardBytes(module_.instr(id).shape, w.state, nullptr, now.final[0], &collectives);
    later.bytes -= bytes;
    later.seconds -= cost_.Seconds(bytes, collectives);
    Replace(id, table_.Keep(later));
    return;
  }
  const InstrId operand = module_.operand(id, 0);
  Wait(operand);
  Replace(id, OnPartial(id, *w.rule, table_.State(operand, 0), nullptr));
}

void WaitingSums::Replace(InstrId id, const Decision* decision) {
  const Decision& before = *table_.plan().ops[id.value].decision;
  table_.Charge(decision->bytes - before.bytes, decision->seconds - before.seconds);
  table_.SetDecision(id, PlanKind::kRule, decision);
  table_.NoteCopies(id, PlanKind::kRule, *decision);
}

}  // namespace internal
}  // namespace shardcall
