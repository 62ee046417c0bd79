// SPDX-License-Identifier: Apache-2.0
// Ops with a factor rule, where equal ops share one decision, and ops without a rule.
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/base/casts.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/spmd/plan/plan_gathers.h"
#include "shardcall/partitioner/spmd/plan/planner.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
inline namespace internal {

const PlanMemo::Entry* Planner::Decide(const OpQuery& query, int region) {
  const Instruction& instr = module_.instr(query.id);
  Arena& arena = context_.arena();
  PlanMemo::Entry* made = arena.New<PlanMemo::Entry>();
  made->rule = query.rule;
  made->region = region;
  made->opcode = instr.opcode;
  made->operands = arena.Copy(query.operands);
  made->wanted = arena.Copy(query.wanted);
  made->copies = arena.Copy(query.copies);
  made->first_with = arena.Copy(query.first_with);
  made->sources = arena.Copy(query.sources);
  made->shares = arena.Copy(query.shares);
  made->accumulated = query.accumulated;
  IndexSet allowed;
  const Decision* d = chooser_.Choose(query, &allowed);
  OpQuery decided = query;
  decided.rule = d->rule;
  made->decision = d;
  made->moves = d->operands != query.operands || d->produced != query.wanted;
  const auto gathers = FindGathers(table_, instr, decided, allowed, *d);
  made->gathers = arena.Copy(absl::MakeConstSpan(gathers));
  const std::string fallback = chooser_.Fallback(decided, allowed, *d);
  if (!fallback.empty()) made->fallback = context_.Intern(fallback);
  return made;
}

Planner::OperandIndices Planner::FirstWithValue(InstrId id) const {
  OperandIndices first;
  const auto operands = module_.operands(id);
  if (operands.size() < 2) return first;
  bool repeated = false;
  constexpr size_t kFew = 8;
  absl::flat_hash_map<LeafId, int> seen;  // if there are more
  absl::InlinedVector<LeafId, kFew> leaves;
  for (InstrId o : operands) {
    for (int leaf = 0; leaf < module_.instr(o).shape->num_leaves(); ++leaf) {
      const LeafId value = leaves_.canonical(o, leaf);
      const int k = static_cast<int>(first.size());
      if (operands.size() > kFew) {
        first.push_back(seen.try_emplace(value, k).first->second);
      } else {
        const auto at = absl::c_find(leaves, value);
        first.push_back(static_cast<int>(at - leaves.begin()));
        leaves.push_back(value);
      }
      repeated = repeated || first.back() != k;
    }
  }
  if (!repeated) first.clear();
  return first;
}

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
  if (!waiting_.PlanSum(id, rule)) PlanByRule(id, rule);
  waiting_.Note(id, rule);
}

void Planner::PlanByRule(InstrId id, const ShardingRule& rule) {
  const Instruction& instr = module_.instr(id);
  const int region = program_.region_of[id.value];
  CopyList copies;
  const States operands = table_.OperandStates(id, &copies);
  States wanted;
  for (int k = 0; k < instr.shape->num_leaves(); ++k) wanted.push_back(table_.WantedOfOp(id, k));
  uint64_t hash =
      MixHash(reinterpret_cast<uintptr_t>(&rule),
              static_cast<uint64_t>(region) << 16 | static_cast<uint64_t>(instr.opcode));
  for (const Sharding* s : operands) hash = MixHash(hash, reinterpret_cast<uintptr_t>(s));
  for (const Sharding* s : wanted) hash = MixHash(hash, reinterpret_cast<uintptr_t>(s));
  for (const Copies* c : copies) hash = MixHash(hash, reinterpret_cast<uintptr_t>(c));
  const OperandIndices first_with = FirstWithValue(id);
  for (int k : first_with) hash = MixHash(hash, static_cast<uint64_t>(k));
  const Sources sources = SourcesOfOperands(id);
  for (const Source& s : sources) hash = MixHash(hash, reinterpret_cast<uintptr_t>(s.attrs));
  const Invariants::Shares shares = invariants_.OfOperands(id);
  for (double s : shares) hash = MixHash(hash, absl::bit_cast<uint64_t>(s));
  const bool body = instr.opcode == Opcode::kCustomCall && rules_.body(id) != nullptr;
  const AccumulatedResult accumulated = waiting_.AccumulatedFrom(id);
  hash = FinishHash(MixHash(hash, absl::bit_cast<uint64_t>(accumulated.share)));
  const PlanMemo::Entry* entry = memo_.decisions.Find(hash, [&](const PlanMemo::Entry& e) {
    return e.rule == &rule && e.region == region && e.opcode == instr.opcode &&
           e.operands == absl::MakeConstSpan(operands) && e.wanted == absl::MakeConstSpan(wanted) &&
           e.copies == absl::MakeConstSpan(copies) &&
           e.first_with == absl::MakeConstSpan(first_with) &&
           e.sources == absl::MakeConstSpan(sources) && e.shares == absl::MakeConstSpan(shares) &&
           e.accumulated == accumulated;
  });
  if (entry == nullptr) {
    ++plan_.memo_misses;
    const Shapes shapes = table_.OperandShapes(id);
    const PlanInputs inputs{program_, rules_, options_};
    const OpQuery query{module_,  id,     &rule,       shapes,
                        operands, copies, wanted,      first_with,
                        sources,  shares, accumulated, body ? &inputs : nullptr};
    entry = Decide(query, region);
    memo_.decisions.Insert(hash, entry);
  } else {
    ++plan_.memo_hits;
  }
  table_.Charge(entry->decision->bytes, entry->decision->seconds - entry->decision->saved);
  if (!entry->fallback.empty()) plan_.fallbacks.push_back({id, std::string(entry->fallback)});
  for (const Gather& g : entry->gathers) plan_.gathers.push_back({id, g});
  if (instr.opcode == Opcode::kCustomCall && !body) {  // a body sees to both
    WarnOfLackingResults(id, *entry->decision);
    CheckUneven(id, *entry->decision);
  }
  if (entry->moves) table_.NoteCopies(id, PlanKind::kRule, *entry->decision);
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
