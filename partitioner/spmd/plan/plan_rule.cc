// SPDX-License-Identifier: Apache-2.0
// Ops with a factor rule: candidates are the factor shardings that the operands
// have, that the result wants, and their compatible unions; the cheapest by the
// cost model wins, the first among equals.
#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/spmd/plan/planner.h"
#include "shardcall/partitioner/spmd/plan/transfers.h"
#include "shardcall/partitioner/spmd/strategies/strategy.h"

namespace shardcall {
namespace {

// True if the factor has one extent in every tensor that holds it.
bool OneExtent(const ShardingRule& rule, int factor) {
  for (const auto& [key, extent] : rule.extents) {
    if (key.second == factor && extent != rule.factors[factor].size) return false;
  }
  return true;
}

double Bytes(const Shape* shape) { return static_cast<double>(shape->byte_size()); }

// The order in which tensors are projected onto the factors.
using Order = absl::InlinedVector<int, 8>;

}  // namespace

IndexSet Planner::AllowedFactors(const Instruction& instr, const ShardingRule& rule) const {
  IndexSet allowed;
  for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
    const Factor& factor = rule.factors[f];
    bool ok = false;
    switch (factor.kind) {
      case FactorKind::kPassThrough:
        ok = OneExtent(rule, f) || AcceptsCrossing(module_, instr, rule, f);
        break;
      case FactorKind::kReduction: ok = OneExtent(rule, f); break;
      case FactorKind::kPermutation: ok = AcceptsCrossing(module_, instr, rule, f); break;
      case FactorKind::kNeedReplication: break;
    }
    if (ok) allowed.Insert(f);
  }
  return allowed;
}

double Planner::LocalSeconds(const Instruction& instr, const Shapes& operand_shapes,
                             const Decision& d) const {
  double shards = 1;
  for (absl::Span<const AxisRef> a : d.factor_axes) shards *= static_cast<double>(AxesSize(a));
  if (instr.opcode == Opcode::kDot || instr.opcode == Opcode::kConvolution) {
    double flops = 2;
    for (const Factor& f : d.rule->factors) flops *= static_cast<double>(f.size);
    return flops / shards / options_.cost.flop_rate;
  }
  double bytes = 0;
  for (size_t k = 0; k < operand_shapes.size(); ++k) {
    if (d.operands[k] == nullptr) continue;
    double n = 1;
    for (int i = 0; i < operand_shapes[k]->rank(); ++i) n *= d.operands[k]->num_shards(i);
    bytes += Bytes(operand_shapes[k]) / n;
  }
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    if (d.produced[k] == nullptr) continue;
    double n = 1;
    for (int i = 0; i < d.produced[k]->rank(); ++i) n *= d.produced[k]->num_shards(i);
    bytes += Bytes(instr.shape->leaf(k)) / n;
  }
  return bytes / options_.cost.memory_rate;
}

bool Planner::Evaluate(InstrId id, const MemoEntry& entry, const Strategy& strategy,
                       const FactorAssignment& assignment, const Shapes& shapes, double limit,
                       Draft* out) {
  const Instruction& instr = module_.instr(id);
  *out = Draft();
  Decision& d = out->d;
  d.rule = entry.rule;
  d.strategy = &strategy;
  if (assignment.mesh() != program_.mesh) d.mesh = assignment.mesh();
  for (const AxisList& a : assignment.axes()) out->axes.push_back(a);
  d.factor_axes = out->axes;
  int collectives = 0;
  auto seconds = [&] {
    return d.bytes / options_.cost.bandwidth + collectives * options_.cost.latency;
  };
  const int num_operands = static_cast<int>(shapes.size());
  for (int k = 0; k < num_operands; ++k) {
    const Sharding* need =
        shapes[k]->IsArray() ? assignment.TensorSharding(context_, k, entry.operands[k]) : nullptr;
    out->operands.push_back(need);
    d.bytes +=
        ReshardBytes(shapes[k], entry.operands[k], CopiesAt(entry.copies, k), need, &collectives);
    if (seconds() >= limit) return false;
  }
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    const Shape* leaf = instr.shape->leaf(k);
    const Sharding* made =
        leaf->IsArray() ? assignment.TensorSharding(context_, num_operands + k, entry.wanted[k])
                        : nullptr;
    out->produced.push_back(made);
    d.bytes += ReshardBytes(leaf, made, nullptr, entry.wanted[k], &collectives);
    if (seconds() >= limit) return false;
  }
  d.operands = out->operands;
  d.produced = out->produced;
  d.final = entry.wanted;
  d.bytes += StrategyBytes(module_, instr, d);
  d.seconds = seconds() + LocalSeconds(instr, shapes, d);
  return d.seconds < limit;
}

void Planner::Decide(InstrId id, MemoEntry* entry) {
  const Instruction& instr = module_.instr(id);
  const ShardingRule& rule = *entry->rule;
  const absl::Span<const Sharding* const> operands = entry->operands, wanted = entry->wanted;
  const Shapes shapes = OperandShapes(id);
  const int num_operands = static_cast<int>(shapes.size());
  const int num_tensors = rule.num_tensors();
  auto state = [&](int t) { return t < num_operands ? operands[t] : wanted[t - num_operands]; };
  const IndexSet allowed = AllowedFactors(instr, rule);

  // Only what is sharded leads to anything. Operands by size, the largest first: the
  // dearest to move leads.
  auto leads = [&](int t) { return state(t) != nullptr && state(t)->HasShardedDim(); };
  Order by_size, results;
  for (int t = 0; t < num_tensors; ++t) {
    if (leads(t)) (t < num_operands ? by_size : results).push_back(t);
  }
  std::sort(by_size.begin(), by_size.end(), [&](int a, int b) {
    const int64_t x = shapes[a]->byte_size(), y = shapes[b]->byte_size();
    return x != y ? x > y : a < b;
  });

  absl::InlinedVector<Order, 12> orders;
  auto add = [&](const Order& first, const Order& then) {
    Order order = first;
    order.insert(order.end(), then.begin(), then.end());
    if (!absl::c_linear_search(orders, order)) orders.push_back(std::move(order));
  };
  const size_t leading = std::min<size_t>(by_size.size(), 4);
  add(results, by_size);
  add(by_size, results);
  for (size_t k = 1; k < leading; ++k) {
    Order others = by_size;
    others.erase(others.begin() + k);
    add({by_size[k]}, others);
  }
  add(results, {});
  for (size_t k = 0; k < leading; ++k) add({by_size[k]}, {});
  add({}, {});

  std::deque<FactorAssignment> tried;  // drafts point into them
  Draft drafts[2];
  Draft *best = nullptr, *next = &drafts[0];
  const auto consider = [&](const Strategy& strategy, FactorAssignment assignment) {
    if (absl::c_linear_search(tried, assignment)) return;
    tried.push_back(std::move(assignment));
    const double limit =
        best == nullptr ? std::numeric_limits<double>::infinity() : best->d.seconds;
    if (!Evaluate(id, *entry, strategy, tried.back(), shapes, limit, next) && best != nullptr) {
      return;
    }
    best = next;
    next = best == &drafts[0] ? &drafts[1] : &drafts[0];
  };
  const absl::Span<const AxisRef> manual = program_.manual_axes(id);
  std::vector<std::pair<const Strategy*, FactorAssignment>> proposed;
  for (const Order& order : orders) {
    // Who leads says on which mesh. What lies on another is gathered.
    const BaseMesh* mesh = program_.mesh;
    if (!order.empty() && manual.empty()) mesh = state(order.front())->mesh();
    FactorAssignment a(rule, mesh, manual, allowed);
    for (int t : order) a.Project(t, *state(t));
    a.Normalize();
    absl::InlinedVector<LeadingState, 8> leading;
    for (int t : order) leading.push_back({t, state(t)});
    for (const Strategy* general : GeneralStrategies()) {
      for (FactorAssignment& further : general->propose(rule, allowed, leading, a)) {
        proposed.push_back({general, std::move(further)});
      }
    }
    consider(StrategyOf(instr.opcode), std::move(a));
  }
  for (auto& [strategy, assignment] : proposed) consider(*strategy, std::move(assignment));
  entry->decision = Keep(best->d);
  entry->moves = entry->decision->operands != operands || entry->decision->produced != wanted;

  FindGathers(id, allowed, shapes, entry);

  // What was gathered because the op cannot run on shards of a factor. A custom
  // call's own need-replication is its author's word, not a fallback.
  if (instr.opcode == Opcode::kCustomCall) return;
  for (int t = 0; t < num_operands && entry->fallback.empty(); ++t) {
    const Sharding* taken = entry->decision->operands[t];
    if (operands[t] == nullptr || taken == operands[t]) continue;
    if (entry->decision->strategy != &StrategyOf(instr.opcode)) continue;  // it is moved
    const TensorFactors& tensor = rule.tensor(t);
    for (size_t d = 0; d < tensor.dims.size(); ++d) {
      if (!operands[t]->IsDimSharded(static_cast<int>(d)) ||
          entry->decision->operands[t]->IsDimSharded(static_cast<int>(d))) {
        continue;
      }
      for (int f : tensor.dims[d]) {
        if (allowed.Contains(f)) continue;
        if (HasTrait(instr.opcode, kCollectiveOp)) continue;
        entry->fallback = context_.Intern(absl::StrCat(OpcodeText(instr.opcode),
                                                       " does not run on shards of dim ", d,
                                                       " of operand ", t, "; it is gathered"));
      }
    }
  }
}

void Planner::PlanRule(InstrId id, const ShardingRule& rule) {
  const Instruction& instr = module_.instr(id);
  const int region = program_.region_of[id.value];
  CopyList copies;
  const States operands = OperandStates(id, &copies);
  States wanted;
  for (int k = 0; k < instr.shape->num_leaves(); ++k) wanted.push_back(WantedOfOp(id, k));
  uint64_t hash =
      MixHash(reinterpret_cast<uintptr_t>(&rule),
              static_cast<uint64_t>(region) << 16 | static_cast<uint64_t>(instr.opcode));
  for (const Sharding* s : operands) hash = MixHash(hash, reinterpret_cast<uintptr_t>(s));
  for (const Sharding* s : wanted) hash = MixHash(hash, reinterpret_cast<uintptr_t>(s));
  for (const Copies* c : copies) hash = MixHash(hash, reinterpret_cast<uintptr_t>(c));
  hash = FinishHash(hash);
  const MemoEntry* entry = memo_.Find(hash, [&](const MemoEntry& e) {
    return e.rule == &rule && e.region == region && e.opcode == instr.opcode &&
           e.operands == absl::MakeConstSpan(operands) && e.wanted == absl::MakeConstSpan(wanted) &&
           e.copies == absl::MakeConstSpan(copies);
  });
  if (entry == nullptr) {
    ++plan_.memo_misses;
    Arena& arena = context_.arena();
    MemoEntry* made = arena.New<MemoEntry>();
    made->rule = &rule;
    made->region = region;
    made->opcode = instr.opcode;
    made->operands = arena.Copy(absl::MakeConstSpan(operands));
    made->wanted = arena.Copy(absl::MakeConstSpan(wanted));
    made->copies = arena.Copy(absl::MakeConstSpan(copies));
    Decide(id, made);
    if (instr.opcode == Opcode::kCustomCall) WarnOfLackingResults(id, *made->decision);
    memo_.Insert(hash, made);
    entry = made;
  } else {
    ++plan_.memo_hits;
  }
  if (!entry->fallback.empty()) plan_.fallbacks.push_back({id, std::string(entry->fallback)});
  for (const Gather& g : entry->gathers) plan_.gathers.push_back({id, g});
  if (instr.opcode == Opcode::kCustomCall) CheckUneven(id, *entry->decision);
  if (entry->moves) NoteCopies(id, PlanKind::kRule, *entry->decision);
  SetDecision(id, PlanKind::kRule, entry->decision);
}

}  // namespace shardcall
