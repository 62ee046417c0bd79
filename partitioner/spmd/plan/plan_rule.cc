// SPDX-License-Identifier: Apache-2.0
// Ops with a factor rule, where equal ops share one decision, and ops without a rule.
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/spmd/plan/plan_gathers.h"
#include "shardcall/partitioner/spmd/plan/planner.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
inline namespace internal {

Sources Planner::SourcesOfOperands(InstrId id) const {
  Sources out;
  if (!ReadsSources(module_.instr(id).opcode)) return out;
  const auto operands = module_.operands(id);
  for (size_t k = 0; k < operands.size(); ++k) {
    const InstrId source = SourceOf(module_, operands[k]);
    if (!source.valid()) continue;
    const Instruction& operand = module_.instr(operands[k]);
    out.resize(operands.size());
    out[k] = {operand.opcode, operand.attrs, module_.instr(source).shape, table_.State(source, 0)};
    const Decision* d = plan_.ops[operands[k].value].decision;
    if (d != nullptr && table_.num_uses(operands[k]) == 1) out[k].saved = d->seconds;
    out[k].with_first = source == SourceOf(module_, operands[0]);
  }
  return out;
}

void Planner::PlanRule(InstrId id, const ShardingRule& rule) {
  if (table_.equal(id).valid() && table_.TakeEqual(id)) return;
  if (!waiting_.PlanSum(id, rule)) {
    PlanByRule(id, rule);
    waiting_.ReduceLater(id, rule);
  }
  waiting_.Note(id, rule);
}

void Planner::PlanByRule(InstrId id, const ShardingRule& rule) {
  const Instruction& instr = module_.instr(id);
  Circumstances c;
  const States operands = table_.OperandStates(id, &c.copies);
  States wanted;
  for (int k = 0; k < instr.shape->num_leaves(); ++k) wanted.push_back(table_.WantedOfOp(id, k));
  c.sources = SourcesOfOperands(id);
  c.shares = invariants_.OfOperands(id);
  c.accumulated = waiting_.AccumulatedFrom(id);
  c.places = table_.PlacesOf(id);
  const PlanMemo::Entry* entry = decider_.Decide(id, rule, operands, wanted, c);
  const Decision& d = *entry->decision;
  table_.Charge(d.bytes - d.saved_bytes, d.seconds - d.saved);
  if (!entry->fallback.empty()) plan_.fallbacks.push_back({id, std::string(entry->fallback)});
  for (const Gather& g : entry->gathers) plan_.gathers.push_back({id, g});
  if (instr.opcode == Opcode::kCustomCall && !decider_.HasBody(id)) {  // a body sees to both
    WarnOfLackingResults(id, *entry->decision);
    CheckUneven(id, *entry->decision);
  }
  if (entry->moves || table_.IsGenerated(id))
    table_.NoteCopies(id, PlanKind::kRule, *entry->decision);
  table_.SetDecision(id, PlanKind::kRule, entry->decision);
}

void Planner::PlanReplicated(InstrId id, PlanKind kind) {
  const Instruction& instr = module_.instr(id);
  Decision d;
  if (kind == PlanKind::kRule) d.strategy = &StrategyOf(instr.opcode);
  States need, produced, final;
  int collectives = 0;
  CopyList copies;
  const States operands = table_.OperandStates(id, &copies);
  const Shapes shapes = table_.OperandShapes(id);
  for (size_t k = 0; k < shapes.size(); ++k) {
    need.push_back(shapes[k]->IsArray() ? table_.Replicated(id, shapes[k]) : nullptr);
    const Copies* at_hand = CopiesAt(copies, k);
    const Traffic traffic = table_.ReshardTraffic(shapes[k], operands[k], at_hand, need.back());
    const double bytes = traffic.bytes;
    collectives += traffic.collectives;
    d.bytes += bytes;
    if (bytes > 0 && kind == PlanKind::kRule && operands[k]->HasShardedDim()) {
      plan_.gathers.push_back(
          {id, {Gather::Kind::kNoStrategy, static_cast<int>(k), operands[k], need.back(), bytes}});
    }
  }
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    const Shape* leaf = instr.shape->leaf(k);
    produced.push_back(leaf->IsArray() ? table_.Replicated(id, leaf) : nullptr);
    final.push_back(table_.Wanted(id, k));
  }
  d.operands = need;
  d.produced = produced;
  d.final = final;
  if (collectives > 0 && kind == PlanKind::kRule) {
    plan_.fallbacks.push_back(
        {id, absl::StrCat(OpcodeText(instr.opcode), " runs on whole operands; they are gathered")});
  }
  if (kind == PlanKind::kRule) NoteWholeResults(table_, id, d.produced, d.final);
  table_.Finish(id, kind, table_.Keep(d));
}

}  // namespace internal
}  // namespace shardcall
