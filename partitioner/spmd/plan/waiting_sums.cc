// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/waiting_sums.h"

#include <algorithm>
#include <limits>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/trip_count.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/sharding/rule/factor_assignment.h"

namespace shardcall {
inline namespace internal {
WaitingSums::WaitingSums(const Program& program, const SpmdOptions& options, PlanTable& table)
    : program_(program),
      module_(program.module),
      cost_(options.cost),
      products_(options.strict_partial ? PassedProducts::kNone : PassedProducts::kAll),
      table_(table),
      accumulators_(table.AccumulatorsOf(products_)),
      stores_sums_(table.WantsPartial()) {
  for (const auto& [sum, a] : accumulators_.sums) {
    for (InstrId addend : AddendsOf(a)) FindMakers(addend, sum);
  }
}

WaitingSums::Cost WaitingSums::ReshardCost(InstrId id, const Sharding* from, const Sharding* to) {
  const Traffic traffic = table_.ReshardTraffic(module_.instr(id).shape, from, nullptr, to);
  return {traffic.bytes, cost_.Seconds(traffic)};
}

bool WaitingSums::MayWait(InstrId id) const {
  if (id == root_ || !module_.instr(id).shape->IsArray() || table_.num_uses(id) != 1) return false;
  const InstrId user = table_.last_user(id);
  const int number = OperandNumber(user, id);
  return HasTrait(module_.instr(user).opcode, kAddsOperands) || Passes(user, number) ||
         (number == 1 && accumulators_.stacks.contains(user));
}

bool WaitingSums::Passes(InstrId id, int operand, bool placed) const {
  return PassesSum(module_, id, operand,
                   placed ? std::min(products_, PassedProducts::kByPositiveConstants) : products_);
}

int WaitingSums::OperandNumber(InstrId id, InstrId operand) const {
  const auto operands = module_.operands(id);
  return static_cast<int>(absl::c_find(operands, operand) - operands.begin());
}

const Decision* WaitingSums::OnPartial(InstrId id, const ShardingRule& rule, int operand,
                                       const Sharding* from, const Sharding* final) {
  Context& context = table_.context();
  const Sharding* dims = WithoutPartial(context, from);
  FactorAssignment a(rule, from->mesh(), program_.manual_axes(id), FactorsAllowedByRule(rule));
  a.Project(std::max(operand, 0), *dims);
  a.Normalize();
  // What is added is a part, too: that of one device, or of the devices that hold it. In a narrow
  // float small parts of a sum may be lost beside it.
  const bool adds = HasTrait(module_.instr(id).opcode, kAddsOperands);
  if (adds && operand >= 0 && IsNarrowFloat(module_.instr(id).shape->element_type())) {
    return nullptr;
  }
  const bool replaces = HasTrait(module_.instr(id).opcode, kReplacesPart);
  States operands;
  for (int t = 0; t < static_cast<int>(rule.operands.size()); ++t) {
    const Sharding* const whole = a.DimSharding(context, t);
    const bool sum = operand < 0 || operand == t || (replaces && t == 0);
    if ((sum || adds) && whole != dims) return nullptr;
    operands.push_back(sum || adds ? from : whole);
    const InstrId other = module_.operand(id, t);
    if (!sum && ReshardCost(other, table_.State(other, 0), operands.back()).bytes > 0) {
      return nullptr;
    }
  }
  // The op may add up shards besides.
  ShardingBuilder made(*a.TensorSharding(context, static_cast<int>(rule.operands.size())));
  if (!made.partial.empty() && made.partial_op != from->partial_op()) return nullptr;
  made.partial.insert(made.partial.end(), from->partial().begin(), from->partial().end());
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
  const Cost reshard = ReshardCost(id, produced, final);
  d.bytes = reshard.bytes;
  d.seconds = reshard.seconds + StrategySeconds(*d.strategy, cost_, module_, instr, d);
  return table_.Keep(d);
}

const Sharding* WaitingSums::StoredSum(InstrId value) const {
  if (!stores_sums_ || !module_.instr(value).shape->IsArray()) return nullptr;
  const Sharding* const s = table_.State(value, 0);
  const bool sum = s != nullptr && !s->partial().empty() && s->partial_op() == PartialOp::kSum;
  return sum ? s : nullptr;
}

bool WaitingSums::PlanPassed(InstrId id, const ShardingRule& rule) {
  if (!stores_sums_ || !module_.instr(id).shape->IsArray()) return false;
  const Sharding* const wanted = table_.WantedOfOp(id, 0);
  if (wanted == nullptr || wanted->partial().empty()) return false;
  const auto operands = module_.operands(id);
  for (int k = 0; k < static_cast<int>(operands.size()); ++k) {
    const Sharding* const stored = StoredSum(operands[k]);
    // A part of a sum may be replaced by that of another one.
    const bool replaces = k == 1 && HasTrait(module_.instr(id).opcode, kReplacesPart) &&
                          StoredSum(operands[0]) == stored;
    if (stored == nullptr || !(replaces || Passes(id, k))) continue;
    const Decision* passed = OnPartial(id, rule, k, stored, nullptr);
    if (passed == nullptr || passed->produced[0] != wanted) continue;
    Set(id, passed);
    return true;
  }
  return false;
}

bool WaitingSums::PlanSum(InstrId id, const ShardingRule& rule) {
  if (PlanPassed(id, rule)) return true;
  if (waiting_.empty() && !stores_sums_) return false;
  if (!HasTrait(module_.instr(id).opcode, kAddsOperands)) return false;
  const auto accumulator = accumulators_.sums.find(id);
  if (accumulator != accumulators_.sums.end())
    return PlanAccumulated(id, rule, accumulator->second);
  const Sharding* state = nullptr;
  double seconds = 0;
  for (InstrId o : module_.operands(id)) {
    const auto found = waiting_.find(o.value);
    const bool waiting = found != waiting_.end();
    const Sharding* const sum = waiting ? found->second.later->produced[0] : StoredSum(o);
    if (sum == nullptr || (state != nullptr && sum != state)) return false;
    state = sum;
    seconds += waiting ? found->second.seconds
                       : ReshardCost(o, sum, WithoutPartial(table_.context(), sum)).seconds;
  }
  const Decision* sum = OnPartial(id, rule, -1, state, table_.WantedOfOp(id, 0));
  if (sum == nullptr || sum->seconds >= seconds) return false;
  for (InstrId o : module_.operands(id)) {
    if (waiting_.contains(o.value)) Wait(o);
  }
  Set(id, sum);
  return true;
}

double WaitingSums::Bits(InstrId id) const {
  const Shape& s = *module_.instr(id).shape;
  return static_cast<double>(s.num_elements()) * ElementTypeBits(s.element_type());
}

double WaitingSums::ShareOfLess(InstrId id) const {
  if (!HasTrait(module_.instr(id).opcode, kMakesSums)) return 1;
  double least = 1, made = Bits(id);
  if (made == 0) return 1;
  InstrId sum = id;
  constexpr int kMost = 8;
  for (int k = 0; k < kMost && MayWait(sum); ++k) {
    const InstrId user = table_.last_user(sum);
    if (const auto stack = accumulators_.stacks.find(user); stack != accumulators_.stacks.end()) {
      made *= RunsOf(stack->second.loop);
      sum = stack->second.result;
      continue;
    }
    const Opcode op = module_.instr(user).opcode;
    // Others may need what the sum's state does not give them.
    const bool runs = HasTrait(op, kElementwise) || op == Opcode::kTranspose ||
                      op == Opcode::kReshape || op == Opcode::kReduce;
    if (!runs || HasTrait(op, kAddsOperands)) break;
    sum = user;
    least = std::min(least, Bits(sum) / made);
  }
  return least == 0 ? 1 : least;
}

void WaitingSums::Note(InstrId id, const ShardingRule& rule) {
  const OpPlan& op = table_.plan().ops[id.value];
  if (op.kind != PlanKind::kRule || op.decision->rule == nullptr) return;
  const Decision& d = *op.decision;
  const Sharding* const produced = d.produced.empty() ? nullptr : d.produced[0];
  if (!waiting_.empty() && accumulators_.stacks.contains(id)) NoteStacked(id, rule);
  const bool makes_sum = produced != nullptr && !produced->partial().empty();
  if (!makes_sum && waiting_.empty() && !stores_sums_) return;
  // Cheaper to see than whether it may wait.
  const int operand = makes_sum ? -1 : PassedOn(id);
  if ((!makes_sum && operand < 0) || !MayWait(id)) return;
  if (makes_sum) {
    if (produced->partial_op() != PartialOp::kSum || !d.final[0]->partial().empty()) return;
    const Cost saved = ReshardCost(id, produced, d.final[0]);
    if (saved.bytes == 0) return;
    const AccumulatedResult accumulated = AccumulatedFrom(id);
    const bool accumulates = made_for_.contains(id);
    const bool shared = accumulated.MayWait(module_.instr(id).shape, *produced);
    if (shared && !accumulates) {
      // It was chosen for what makes less of it, which may yet not wait for that.
      Decision at_once = d;
      at_once.saved -= (1 - accumulated.share) * saved.seconds;
      Set(id, table_.Keep(at_once));
    }
    Decision later = *table_.plan().ops[id.value].decision;
    later.final = later.produced;
    later.bytes -= saved.bytes;
    later.seconds -= saved.seconds;
    if (shared && accumulates) {
      later.saved -= (1 - accumulated.share) * saved.seconds;
      const MadeFor& to = made_for_.at(id);
      const int64_t more = LocalBytes(module_.instr(id).shape, *produced) - accumulated.held_bytes;
      TakeRoom(to.sum, static_cast<int64_t>(static_cast<double>(more) * to.parts));
    }
    const bool placed = !HasTrait(module_.instr(id).opcode, kMakesSums);
    waiting_[id.value] = {table_.Keep(later), InstrId(), saved.seconds, placed};
    return;
  }
  const InstrId before = module_.operand(id, operand);
  const auto found = waiting_.find(before.value);
  const bool waiting = found != waiting_.end();
  const Sharding* const sum = waiting ? found->second.later->produced[0] : StoredSum(before);
  const double seconds = waiting ? found->second.seconds : 0;
  const bool placed = waiting && found->second.placed &&
                      !HasTrait(module_.instr(id).opcode, kMakesSums | kAddsOperands);
  const Decision* later = OnPartial(id, rule, operand, sum, nullptr);
  if (later == nullptr) return;
  waiting_[id.value] = {later, waiting ? before : InstrId(),
                        seconds + d.seconds - d.saved - later->seconds, placed};
}

int WaitingSums::PassedOn(InstrId id) const {
  const auto operands = module_.operands(id);
  for (int k = 0; k < static_cast<int>(operands.size()); ++k) {
    // What waits has one use, which is cheaper to see.
    const auto found =
        table_.num_uses(operands[k]) == 1 ? waiting_.find(operands[k].value) : waiting_.end();
    const bool waits = found != waiting_.end();
    if (!waits && StoredSum(operands[k]) == nullptr) continue;
    const bool adds = waits && HasTrait(module_.instr(id).opcode, kAddsOperands);
    if (adds || Passes(id, k, waits && found->second.placed)) return k;
  }
  return -1;
}

void WaitingSums::ReduceLater(InstrId id, const ShardingRule& rule) {
  if (waiting_.empty()) return;
  const OpPlan& op = table_.plan().ops[id.value];
  const int operand = PassedOn(id);
  if (operand < 0 || op.kind != PlanKind::kRule || op.decision->rule == nullptr) return;
  const InstrId before = module_.operand(id, operand);
  const bool adds = HasTrait(module_.instr(id).opcode, kAddsOperands);
  if (!adds && Bits(id) >= Bits(before)) return;
  const auto found = waiting_.find(before.value);
  if (found == waiting_.end()) return;
  const Decision* later =
      OnPartial(id, rule, operand, found->second.later->produced[0], op.decision->final[0]);
  const double now = op.decision->seconds - op.decision->saved + found->second.seconds;
  if (later == nullptr || later->seconds >= now) return;
  Wait(before);
  Set(id, later);
}

void WaitingSums::Wait(InstrId id) {
  const auto stack = stacks_.find(id);
  if (stack != stacks_.end()) {
    WaitStacked(id, stack->second);
    return;
  }
  const Waiting& w = waiting_.at(id.value);
  if (w.before.valid()) Wait(w.before);
  Set(id, w.later);
}

void WaitingSums::ChargeChange(InstrId id, const Decision* decision, double runs) {
  const auto charge = [&](double times, const Decision& d) {
    table_.Charge(times * (d.bytes - d.saved_bytes), times * (d.seconds - d.saved));
  };
  const Decision* const now = table_.plan().ops[id.value].decision;
  if (now != nullptr) charge(-runs, *now);
  charge(runs, *decision);
}

void WaitingSums::Set(InstrId id, const Decision* decision) {
  ChargeChange(id, decision, 1);
  table_.SetDecision(id, PlanKind::kRule, decision);
  table_.NoteCopies(id, PlanKind::kRule, *decision);
}

}  // namespace internal
}  // namespace shardcall
