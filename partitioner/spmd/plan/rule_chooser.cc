// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/rule_chooser.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall::inline internal {
namespace {

// True if the factor has the same extent in all tensors.
bool OneExtent(const ShardingRule& rule, int factor) {
  for (const auto& [key, extent] : rule.extents) {
    if (key.second == factor && extent != rule.factors[factor].size) return false;
  }
  return true;
}

// The order in which tensors are projected onto the factors.
using Order = absl::InlinedVector<int, 8>;

// The orders to try; in conflicts the first tensor wins. They are: results first, then operands by
// size; operands by size first; each other large operand first; the results alone; each large
// operand alone; and no tensor at all.
absl::InlinedVector<Order, 12> Orders(absl::Span<const int> by_size,
                                      absl::Span<const int> results) {
  absl::InlinedVector<Order, 12> orders;
  const auto add = [&](absl::Span<const int> first, absl::Span<const int> then) {
    Order order(first.begin(), first.end());
    order.insert(order.end(), then.begin(), then.end());
    if (!absl::c_linear_search(orders, order)) orders.push_back(std::move(order));
  };
  const size_t leading = std::min<size_t>(by_size.size(), 4);
  add(results, by_size);
  add(by_size, results);
  for (size_t k = 1; k < leading; ++k) {
    Order others(by_size.begin(), by_size.end());
    others.erase(others.begin() + k);
    add({by_size[k]}, others);
  }
  add(results, {});
  for (size_t k = 0; k < leading; ++k) add({by_size[k]}, {});
  add({}, {});
  return orders;
}

// Keeps the cheapest candidate of each strategy.
void NoteCandidate(const Decision& d, absl::InlinedVector<DearerCandidate, 2>* cheapest) {
  for (DearerCandidate& c : *cheapest) {
    if (c.strategy != d.strategy) continue;
    if (d.seconds < c.seconds) c = {d.strategy, d.bytes, d.seconds};
    return;
  }
  cheapest->push_back({d.strategy, d.bytes, d.seconds});
}

}  // namespace

// A decision that owns its storage.
struct RuleChooser::Draft {
  Decision d;
  States operands, produced;
  absl::InlinedVector<absl::Span<const AxisRef>, 8> axes;
};

IndexSet RuleChooser::AllowedFactors(const Instruction& instr, const ShardingRule& rule) const {
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

bool RuleChooser::Evaluate(const RuleQuery& query, const Strategy& strategy,
                           const FactorAssignment& assignment, double limit, Draft* out) {
  const Instruction& instr = module_.instr(query.id);
  Context& context = table_.context();
  *out = Draft();
  Decision& d = out->d;
  d.rule = query.rule;
  d.strategy = &strategy;
  if (assignment.mesh() != program_.mesh) d.mesh = assignment.mesh();
  for (const AxisList& a : assignment.axes()) out->axes.push_back(a);
  d.factor_axes = out->axes;
  int collectives = 0;
  const auto too_dear = [&] {
    d.seconds = cost_.Seconds(d.bytes, collectives);
    return d.seconds >= limit;
  };
  const int num_operands = static_cast<int>(query.shapes.size());
  for (int k = 0; k < num_operands; ++k) {
    const Sharding* need = query.shapes[k]->IsArray()
                               ? assignment.TensorSharding(context, k, query.operands[k])
                               : nullptr;
    out->operands.push_back(need);
    d.bytes += table_.ReshardBytes(query.shapes[k], query.operands[k], CopiesAt(query.copies, k),
                                   need, &collectives);
    if (too_dear()) return false;
  }
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    const Shape* leaf = instr.shape->leaf(k);
    const Sharding* made =
        leaf->IsArray() ? assignment.TensorSharding(context, num_operands + k, query.wanted[k])
                        : nullptr;
    out->produced.push_back(made);
    d.bytes += table_.ReshardBytes(leaf, made, nullptr, query.wanted[k], &collectives);
    if (too_dear()) return false;
  }
  d.operands = out->operands;
  d.produced = out->produced;
  d.final = query.wanted;
  d.bytes += StrategyBytes(strategy, module_, instr, d);
  d.seconds =
      cost_.Seconds(d.bytes, collectives) + StrategySeconds(strategy, cost_, module_, instr, d);
  return d.seconds < limit;
}

const Decision* RuleChooser::Choose(const RuleQuery& query, const IndexSet& allowed) {
  const ShardingRule& rule = *query.rule;
  const int num_operands = static_cast<int>(query.shapes.size());
  const auto state = [&](int t) {
    return t < num_operands ? query.operands[t] : query.wanted[t - num_operands];
  };
  // Only sharded tensors can determine factor shardings.
  Order by_size, results;
  for (int t = 0; t < rule.num_tensors(); ++t) {
    if (state(t) == nullptr || !state(t)->HasShardedDim()) continue;
    (t < num_operands ? by_size : results).push_back(t);
  }
  std::sort(by_size.begin(), by_size.end(), [&](int a, int b) {
    const int64_t x = query.shapes[a]->byte_size(), y = query.shapes[b]->byte_size();
    return x != y ? x > y : a < b;
  });

  absl::InlinedVector<DearerCandidate, 2> cheapest;  // of each strategy
  Draft drafts[2];
  Draft *best = nullptr, *next = &drafts[0];
  // `assignment` must outlive the drafts, which point into it.
  const auto consider = [&](const Strategy& strategy, const FactorAssignment& assignment) {
    const double limit =
        best == nullptr ? std::numeric_limits<double>::infinity() : best->d.seconds;
    const bool cheaper = Evaluate(query, strategy, assignment, limit, next);
    NoteCandidate(next->d, &cheapest);
    if (!cheaper && best != nullptr) return;
    best = next;
    next = best == &drafts[0] ? &drafts[1] : &drafts[0];
  };
  const absl::Span<const AxisRef> manual = program_.manual_axes(query.id);
  const Strategy& own = StrategyOf(module_.instr(query.id).opcode);
  const auto orders = Orders(by_size, results);
  absl::InlinedVector<FactorAssignment, 12> tried;
  tried.reserve(orders.size());
  bool all_allowed = true;
  for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
    all_allowed = all_allowed && allowed.Contains(f);
  }
  std::vector<std::pair<const Strategy*, FactorAssignment>> proposed;
  for (const Order& order : orders) {
    // The leading tensor determines the mesh. Tensors on another mesh are gathered.
    const BaseMesh* mesh = program_.mesh;
    if (!order.empty() && manual.empty()) mesh = state(order.front())->mesh();
    FactorAssignment a(rule, mesh, manual, allowed);
    for (int t : order) a.Project(t, *state(t));
    a.Normalize();
    absl::InlinedVector<LeadingState, 8> leading;
    for (int t : order) leading.push_back({t, state(t)});
    for (const Strategy* general : GeneralStrategies()) {
      if (all_allowed) break;  // the rule keeps nothing whole
      for (FactorAssignment& further : general->propose(rule, allowed, leading, a)) {
        proposed.push_back({general, std::move(further)});
      }
    }
    if (absl::c_linear_search(tried, a)) continue;
    tried.push_back(std::move(a));
    consider(own, tried.back());
  }
  for (const auto& [strategy, assignment] : proposed) {
    if (!absl::c_linear_search(tried, assignment)) consider(*strategy, assignment);
  }
  absl::InlinedVector<DearerCandidate, 2> dearer;
  absl::c_copy_if(cheapest, std::back_inserter(dearer),
                  [&](const DearerCandidate& c) { return c.strategy != best->d.strategy; });
  best->d.dearer = dearer;
  return table_.Keep(best->d);
}

std::string RuleChooser::Fallback(const RuleQuery& query, const IndexSet& allowed,
                                  const Decision& decision) const {
  const Instruction& instr = module_.instr(query.id);
  // Not reported: need_replication factors of custom calls, which their authors chose; collectives
  // of the program; and operands of a strategy other than the op's own, which moves axes instead of
  // gathering.
  if (instr.opcode == Opcode::kCustomCall || HasTrait(instr.opcode, kCollectiveOp) ||
      decision.strategy != &StrategyOf(instr.opcode)) {
    return "";
  }
  for (int t = 0; t < static_cast<int>(query.operands.size()); ++t) {
    const Sharding *from = query.operands[t], *taken = decision.operands[t];
    if (from == nullptr || taken == from) continue;
    const TensorFactors& tensor = query.rule->tensor(t);
    std::string reason;
    for (int d = 0; d < static_cast<int>(tensor.dims.size()); ++d) {
      if (!from->IsDimSharded(d) || taken->IsDimSharded(d)) continue;
      if (absl::c_all_of(tensor.dims[d], [&](int f) { return allowed.Contains(f); })) continue;
      reason = absl::StrCat(OpcodeText(instr.opcode), " does not run on shards of dim ", d,
                            " of operand ", t, "; it is gathered");
    }
    if (!reason.empty()) return reason;
  }
  return "";
}

}  // namespace shardcall::inline internal
