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

namespace shardcall {
inline namespace internal {
namespace {

using Order = RuleChooser::Order;

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

// The factors that a strategy of the op which goes by a rule of its own can have sharded.
IndexSet AllowedElsewhere(const OpQuery& op) {
  IndexSet allowed;
  for (const Strategy* strategy : StrategiesOf(op.instr().opcode)) {
    ShardingRule rule;
    if (strategy->rule == nullptr || !strategy->rule(op, &rule)) continue;
    OpQuery by_its_rule = op;
    by_its_rule.rule = &rule;
    const IndexSet its_own = AllowedFactors(by_its_rule, *strategy);
    // Such a rule is made of the op's: what it adds has numbers beyond.
    for (int f = 0; f < static_cast<int>(op.rule->factors.size()); ++f) {
      if (its_own.Contains(f)) allowed.Insert(f);
    }
  }
  return allowed;
}

}  // namespace

// The cheapest candidate so far, and the cheapest of each strategy.
class RuleChooser::Comparison {
 public:
  double limit() const {
    return best_ == nullptr ? std::numeric_limits<double>::infinity()
                            : best_->d.seconds - best_->d.saved;
  }
  // Where the next candidate is made.
  Candidate* next() { return next_; }
  // Counts the next candidate. It is not `cheaper` if it was not completed.
  void Count(bool cheaper) {
    if (next_->d.seconds == std::numeric_limits<double>::infinity()) {
      refused_ = refused_ || next_->d.strategy->rule == nullptr;
      return;
    }
    Note(next_->d);
    if (!cheaper && best_ != nullptr) return;
    best_ = next_;
    next_ = best_ == &drafts_[0] ? &drafts_[1] : &drafts_[0];
  }
  bool sends_nothing() const { return best_ != nullptr && best_->d.bytes == 0; }
  // Whether a strategy could not run some candidate by the op's own rule.
  bool refused() const { return refused_; }
  const Decision& Best() {
    absl::c_copy_if(cheapest_, std::back_inserter(rejected_),
                    [&](const RejectedCandidate& c) { return c.strategy != best_->d.strategy; });
    best_->d.rejected = rejected_;
    return best_->d;
  }

 private:
  void Note(const Decision& d) {
    for (RejectedCandidate& c : cheapest_) {
      if (c.strategy != d.strategy) continue;
      if (d.seconds < c.seconds) c = {d.strategy, d.bytes, d.seconds};
      return;
    }
    cheapest_.push_back({d.strategy, d.bytes, d.seconds});
  }

  bool refused_ = false;
  Candidate drafts_[2];
  Candidate* best_ = nullptr;
  Candidate* next_ = &drafts_[0];
  absl::InlinedVector<RejectedCandidate, 3> cheapest_;
  absl::InlinedVector<RejectedCandidate, 2> rejected_;
};

bool RuleChooser::Evaluate(const OpQuery& op, const Strategy& strategy,
                           const FactorAssignment& assignment, double limit, Candidate* out) {
  const Instruction& instr = op.instr();
  Context& context = table_.context();
  *out = Candidate();
  Decision& d = out->d;
  d.rule = op.rule;
  d.strategy = &strategy;
  if (assignment.mesh() != program_.mesh) d.mesh = assignment.mesh();
  out->own_axes.assign(assignment.axes().begin(), assignment.axes().end());
  for (const AxisList& a : out->own_axes) out->axes.push_back(a);
  d.factor_axes = out->axes;
  Traffic traffic;
  double most_saved = 0;
  for (const Source& s : op.sources) most_saved += s.saved;
  const auto too_dear = [&] {
    d.bytes = traffic.bytes;
    d.seconds = cost_.Seconds(traffic);
    return d.seconds - d.saved - most_saved >= limit;
  };
  const int num_operands = static_cast<int>(op.shapes.size());
  for (int k = 0; k < num_operands; ++k) {
    const Sharding* need =
        op.shapes[k]->IsArray() ? assignment.TensorSharding(context, k, op.operands[k]) : nullptr;
    out->operands.push_back(need);
    if (!op.first_with.empty() && op.first_with[k] < k && out->operands[op.first_with[k]] == need) {
      continue;
    }
    const Traffic reshard =
        table_.ReshardTraffic(op.shapes[k], op.operands[k], CopiesAt(op.copies, k), need);
    traffic += reshard;
    const double share = k < static_cast<int>(op.shares.size()) ? op.shares[k] : 1;
    d.saved += (1 - share) * cost_.Seconds(reshard);
    d.saved_bytes += (1 - share) * reshard.bytes;
    if (too_dear()) return false;
  }
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    const Shape* leaf = instr.shape->leaf(k);
    const Sharding* made = leaf->IsArray()
                               ? assignment.TensorSharding(context, num_operands + k, op.wanted[k])
                               : nullptr;
    out->produced.push_back(made);
    const Traffic reshard = table_.ReshardTraffic(leaf, made, nullptr, op.wanted[k]);
    traffic += reshard;
    if (reshard.bytes > 0 && op.accumulated.MayWait(leaf, *made)) {
      d.saved += (1 - op.accumulated.share) * cost_.Seconds(reshard);
    }
    if (too_dear()) return false;
  }
  d.operands = out->operands;
  d.produced = out->produced;
  d.final = op.wanted;
  if (strategy.complete != nullptr && !strategy.complete(op, out)) {
    d.seconds = std::numeric_limits<double>::infinity();
    return false;
  }
  PutInOrder(&out->exchanges);
  d.exchanges = out->exchanges;
  traffic += ExchangeTraffic(context, d.exchanges, op.shapes, d.operands);
  for (const Traffic& emitted : out->emitted) traffic += emitted;
  d.bytes = traffic.bytes;
  d.seconds = cost_.Seconds(traffic) + StrategySeconds(strategy, cost_, op.module, instr, d);
  return d.seconds - d.saved < limit;
}

void RuleChooser::Offer(const OpQuery& op, const Strategy& strategy, Comparison* comparison) {
  const int num_operands = static_cast<int>(op.shapes.size());
  // Only sharded tensors can determine factor shardings.
  Order by_size, results;
  for (int t = 0; t < op.rule->num_tensors(); ++t) {
    if (op.state(t) == nullptr || !op.state(t)->HasShardedDim()) continue;
    (t < num_operands ? by_size : results).push_back(t);
  }
  std::sort(by_size.begin(), by_size.end(), [&](int a, int b) {
    const int64_t x = op.shapes[a]->byte_size(), y = op.shapes[b]->byte_size();
    return x != y ? x > y : a < b;
  });
  const auto orders = Orders(by_size, results);
  absl::InlinedVector<FactorAssignment, 12> tried;
  tried.reserve(orders.size());
  const IndexSet allowed = AllowedFactors(op, strategy);
  OfferAmong(op, strategy, allowed, orders, &tried, comparison);
  // Gathering a dimension may be cheaper than moving data across its shards.
  const IndexSet by_rule = FactorsAllowedByRule(*op.rule);
  if (by_rule != allowed) OfferAmong(op, strategy, by_rule, orders, &tried, comparison);
  if (elsewhere_ && strategy.rule == nullptr && !comparison->sends_nothing()) {
    OfferElsewhere(op, strategy, by_size, &tried, comparison);
  }
}

// An all-to-all of an operand may send less than to reduce a result whose sum it shards, and to
// compute shards and gather them may take less time than to compute all of it on each device.
void RuleChooser::OfferElsewhere(const OpQuery& op, const Strategy& strategy,
                                 absl::Span<const int> by_size,
                                 absl::InlinedVector<FactorAssignment, 12>* tried,
                                 Comparison* comparison) {
  constexpr size_t kMostLists = 3;
  constexpr int kMostFactors = 8;
  const ShardingRule& rule = *op.rule;
  const int factors = static_cast<int>(rule.factors.size());
  if (factors > kMostFactors) return;
  absl::InlinedVector<absl::Span<const AxisRef>, kMostLists> lists;
  for (int t = 0; t < rule.num_tensors(); ++t) {
    const Sharding* const s = op.state(t);
    if (s == nullptr || s->mesh() != program_.mesh) continue;
    for (int d = 0; d < s->rank() && lists.size() < kMostLists; ++d) {
      if (s->IsDimSharded(d) && !absl::c_linear_search(lists, s->dim(d))) {
        lists.push_back(s->dim(d));
      }
    }
  }
  const absl::Span<const AxisRef> manual = program_.manual_axes(op.id);
  const IndexSet allowed = FactorsAllowedByRule(rule);
  for (const absl::Span<const AxisRef> axes : lists) {
    for (int f = 0; f < factors; ++f) {
      if (!allowed.Contains(f) || rule.factors[f].size % AxesSize(axes) != 0) continue;
      for (const bool with_others : {true, false}) {
        FactorAssignment a(rule, program_.mesh, manual, allowed);
        a.Extend(f, axes);
        for (int t : by_size) {
          if (with_others) a.Project(t, *op.state(t));
        }
        a.Normalize();
        if (absl::c_linear_search(*tried, a)) continue;
        tried->push_back(std::move(a));
        comparison->Count(
            Evaluate(op, strategy, tried->back(), comparison->limit(), comparison->next()));
      }
    }
  }
}

void RuleChooser::OfferAmong(const OpQuery& op, const Strategy& strategy, const IndexSet& allowed,
                             absl::Span<const Order> orders,
                             absl::InlinedVector<FactorAssignment, 12>* tried,
                             Comparison* comparison) {
  const ShardingRule& rule = *op.rule;
  const absl::Span<const AxisRef> manual = program_.manual_axes(op.id);
  const auto consider = [&](const Strategy& with, const FactorAssignment& assignment) {
    comparison->Count(Evaluate(op, with, assignment, comparison->limit(), comparison->next()));
  };
  bool all_allowed = true;
  for (int f = 0; f < static_cast<int>(rule.factors.size()); ++f) {
    all_allowed = all_allowed && allowed.Contains(f);
  }
  std::vector<std::pair<const Strategy*, FactorAssignment>> proposed;
  for (const Order& order : orders) {
    // The leading tensor determines the mesh. Tensors on another mesh are gathered.
    const BaseMesh* mesh = program_.mesh;
    if (!order.empty() && manual.empty()) mesh = op.state(order.front())->mesh();
    FactorAssignment a(rule, mesh, manual, allowed);
    for (int t : order) a.Project(t, *op.state(t));
    a.Normalize();
    absl::InlinedVector<LeadingState, 8> leading;
    for (int t : order) leading.push_back({t, op.state(t)});
    for (const Strategy* general : GeneralStrategies()) {
      // Not if the rule keeps nothing whole, nor with a rule of a strategy's own.
      if (all_allowed || strategy.rule != nullptr) break;
      for (FactorAssignment& further : general->propose(rule, allowed, leading, a)) {
        proposed.push_back({general, std::move(further)});
      }
    }
    if (strategy.propose != nullptr) {
      for (FactorAssignment& further : strategy.propose(rule, allowed, leading, a)) {
        proposed.push_back({&strategy, std::move(further)});
      }
    }
    if (absl::c_linear_search(*tried, a)) continue;
    tried->push_back(std::move(a));
    consider(strategy, tried->back());
  }
  for (const auto& [general, assignment] : proposed) {
    if (!absl::c_linear_search(*tried, assignment)) consider(*general, assignment);
  }
}

const Decision* RuleChooser::Choose(const OpQuery& op, IndexSet* allowed) {
  Comparison comparison;
  const Strategy* const body = &kBodyStrategy;
  for (const Strategy* strategy :
       op.body != nullptr ? absl::MakeConstSpan(&body, 1) : StrategiesOf(op.instr().opcode)) {
    if (strategy->rule == nullptr) {
      Offer(op, *strategy, &comparison);
      continue;
    }
    // What moves data is not made faster by sending more than nothing, except for its operands.
    if (strategy->seconds == nullptr && op.sources.empty() && comparison.sends_nothing()) continue;
    ShardingRule rule;
    if (!strategy->rule(op, &rule)) continue;
    OpQuery by_its_rule = op;
    by_its_rule.rule = table_.KeepRule(std::move(rule));
    Offer(by_its_rule, *strategy, &comparison);
  }
  const Decision* best = table_.Keep(comparison.Best());
  OpQuery decided = op;
  decided.rule = best->rule;
  *allowed = comparison.refused() && best->exchanges.empty()
                 ? FactorsAllowedByRule(*best->rule)
                 : AllowedFactors(decided, *best->strategy);
  return best;
}

std::string RuleChooser::Fallback(const OpQuery& op, const IndexSet& allowed,
                                  const Decision& decision) const {
  const Instruction& instr = op.instr();
  // Not reported: need_replication factors of custom calls, which their authors chose; collectives
  // of the program; and operands of a strategy other than the op's own, which moves axes instead of
  // gathering.
  if (instr.opcode == Opcode::kCustomCall || HasTrait(instr.opcode, kCollectiveOp) ||
      decision.strategy != &StrategyOf(instr.opcode)) {
    return "";
  }
  for (int t = 0; t < static_cast<int>(op.operands.size()); ++t) {
    const Sharding *from = op.operands[t], *taken = decision.operands[t];
    if (from == nullptr || taken == from) continue;
    // An all-to-all leaves as many shards.
    int64_t before = 1, after = 1;
    for (int d = 0; d < from->rank(); ++d) {
      before *= from->num_shards(d);
      after *= taken->num_shards(d);
    }
    if (after >= before) continue;
    const Copies* const at_hand = CopiesAt(op.copies, t);
    if (table_.ReshardTraffic(op.shapes[t], from, at_hand, taken).bytes == 0) continue;
    const TensorFactors& tensor = op.rule->tensor(t);
    std::string reason;
    for (int d = 0; d < static_cast<int>(tensor.dims.size()); ++d) {
      if (!from->IsDimSharded(d) || taken->IsDimSharded(d)) continue;
      if (absl::c_all_of(tensor.dims[d], [&](int f) { return allowed.Contains(f); })) continue;
      const IndexSet elsewhere = AllowedElsewhere(op);
      const bool runs = absl::c_all_of(
          tensor.dims[d], [&](int f) { return allowed.Contains(f) || elsewhere.Contains(f); });
      reason = absl::StrCat(OpcodeText(instr.opcode), runs ? " takes longer" : " does not run",
                            " on shards of dim ", d, " of operand ", t, "; it is gathered");
    }
    if (!reason.empty()) return reason;
  }
  return "";
}

}  // namespace internal
}  // namespace shardcall
