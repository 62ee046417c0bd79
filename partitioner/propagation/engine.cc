// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/propagation/engine.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/propagation/indexed_carries.h"
#include "shardcall/partitioner/propagation/summed_results.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall {
inline namespace internal {

PropagationEngine::PropagationEngine(const Program& program, RuleTable& rules)
    : program_(program),
      rules_(rules),
      context_(program.module.context()),
      graph_(program, rules),
      uses_(program) {}

void PropagationEngine::Queue(uint32_t node, int stage) {
  queue_[stage].Insert(graph_.place_of(node));
}

void PropagationEngine::QueueLeaf(LeafId leaf) {
  for (uint32_t n : graph_.nodes_of(leaf)) Queue(n, 0);
}

void PropagationEngine::SetOrders(const PropagationOptions& options) {
  conflicts_ = options.conflicts;
  own_orders_.clear();
  met_.clear();
  met_rules_.clear();
  if (options.choices.empty()) return;
  absl::flat_hash_map<InstrId, ConflictOrder> of_op;
  for (const ConflictChoice& c : options.choices) of_op[c.op] = c.order;
  for (int n = 0; n < graph_.num_nodes(); ++n) {
    const Node& node = graph_.node(n);
    const auto chosen = of_op.find(node.instr);
    if (chosen != of_op.end() && node.rule != nullptr) own_orders_[node.rule] = chosen->second;
  }
}

void PropagationEngine::NoteConflict(const Node& node, const Contest& contest) {
  if (!met_rules_.insert(node.rule).second) return;
  const auto& bytes = node.rule->bytes;
  const absl::Span<const LeafId> leaves = graph_.leaves(node);
  Conflict met = {.op = node.instr,
                  .bytes = *std::max_element(bytes.begin(), bytes.end()),
                  .value = leaves[contest.tensor],
                  .axis = contest.axis};
  for (int k = 0; k < 2; ++k) {
    const Contest::Side& side = contest.sides[k];
    met.sides[k] = {side.dim, leaves[side.from], side.from_dim};
  }
  met_.push_back(met);
}

const PropagationEngine::Memo& PropagationEngine::StepOf(const Node& node,
                                                         absl::Span<const LeafId> leaves) {
  const ConflictOrder order = OrderOf(node.rule);
  const StepRule* const rule = node.rule->step;
  uint64_t hash = reinterpret_cast<uintptr_t>(rule);
  for (LeafId l : leaves) {
    hash = MixHash(hash, reinterpret_cast<uintptr_t>(sharding_[l.value]));
    hash = MixHash(hash, reinterpret_cast<uintptr_t>(limits_[l.value]));
  }
  hash = FinishHash(hash);
  const Memo* found = memo_table_.Find(hash, [&](const Memo& m) {
    if (m.rule != rule || m.tensors.size() != leaves.size()) return false;
    // Without a conflict all orders have the same result.
    if (m.order != order && m.contest != nullptr) return false;
    for (size_t k = 0; k < leaves.size(); ++k) {
      if (m.tensors[k].sharding != sharding_[leaves[k].value] ||
          m.tensors[k].limits != limits_[leaves[k].value]) {
        return false;
      }
    }
    return true;
  });
  if (found != nullptr) return *found;
  absl::InlinedVector<StepTensor, 8> tensors;
  for (LeafId l : leaves) tensors.push_back({sharding_[l.value], limits_[l.value]});
  Memo* memo = context_.arena().New<Memo>();
  memo->rule = rule;
  memo->order = order;
  memo->tensors = context_.arena().Copy(absl::MakeConstSpan(tensors));
  // Tokens have no sharding; a step sees them as replicated.
  for (StepTensor& t : tensors) {
    if (t.sharding != nullptr) continue;
    t = {ReplicatedSharding(context_, program_.mesh, 0), InternLimits({})};
  }
  Keep(PropagateThrough(*rule, tensors, order), memo);
  memo_table_.Insert(hash, memo);
  return *memo;
}

void PropagationEngine::Keep(const StepResult& result, Memo* memo) {
  Arena& arena = context_.arena();
  memo->stage = result.stage;
  memo->mesh = result.mesh;
  if (result.contested) memo->contest = arena.New<Contest>(result.contest);
  absl::InlinedVector<Offer, 4> offers;
  for (const Proposal& p : result.proposals) {
    Change* const change = offers.empty() || offers.back().tensor != p.tensor
                               ? arena.New<Change>()
                               : offers.back().change;
    ++change->offers;
    offers.push_back({p.tensor, p.dim, p.from, p.from_dim, p.kind,
                      arena.Copy(absl::MakeConstSpan(p.axes)), change});
  }
  memo->offers = arena.Copy(absl::MakeConstSpan(offers));
}

void PropagationEngine::Propose(LeafId leaf, LeafId from, uint32_t node, const Offer* offer,
                                const BaseMesh* mesh, int64_t bytes) {
  const uint64_t order = (uint64_t{graph_.order()[program_.leaves.instr(from).value]} << 32) |
                         static_cast<uint32_t>(program_.leaves.index(from));
  pending_.push_back(
      {leaf, from, offer, mesh, node, graph_.order()[graph_.node(node).instr.value], bytes, order});
}

bool PropagationEngine::IsSettled(const StepRule& rule, absl::Span<const LeafId> leaves) const {
  if (rule.alike.empty()) return false;
  const Sharding* const first = sharding_[leaves[rule.alike[0]].value];
  return absl::c_all_of(rule.alike, [&](int t) { return sharding_[leaves[t].value] == first; });
}

void PropagationEngine::VisitRule(uint32_t n, const Node& node, int stage) {
  const absl::Span<const LeafId> leaves = graph_.leaves(node);
  if (IsSettled(*node.rule->step, leaves)) return;
  const Memo& step = StepOf(node, leaves);
  if (step.stage == kNumStages) return;
  // A conflict that waits for the aggressive half of its level counts if it is still there when
  // another order would decide it, in the basic half.
  const int basic = step.stage & ~1;
  if (step.contest != nullptr && stage < basic) {
    Queue(n, basic);
    return;
  }
  if (step.contest != nullptr) NoteConflict(node, *step.contest);
  if (step.stage > stage) {
    Queue(n, step.stage);
    return;
  }
  for (const Offer& o : step.offers) {
    Propose(leaves[o.tensor], leaves[o.from], n, &o, step.mesh, node.rule->bytes[o.from]);
  }
}

// Entry [operand 0 {m, a}] -> local {a}: axes that the local side gains are appended to the manual
// axes of the global side, and the other way round.
void PropagationEngine::VisitBoundary(uint32_t n, const Node& node) {
  const ManualBoundary& b = program_.boundaries.at(node.instr);
  const absl::Span<const LeafId> leaves = graph_.leaves(node);
  const LeafId global = b.entry ? leaves[0] : leaves[1];
  const LeafId local = b.entry ? leaves[1] : leaves[0];
  const Sharding& g = *sharding_[global.value];
  const Sharding& l = *sharding_[local.value];
  const BaseMesh& mesh = *program_.mesh;
  if (g.is_maximal() || l.is_maximal() || l.mesh() != &mesh) return;
  if (g.mesh() != &mesh && !g.used().empty()) return;
  const auto& manual = b.manual_dims[node.index];
  auto propose = [&](LeafId to, LeafId from, int d, AxisList axes) {
    own_axes_.push_back(std::move(axes));
    own_offers_.push_back({0, d, 0, d, FactorKind::kPassThrough, own_axes_.back()});
    Propose(to, from, n, &own_offers_.back(), &mesh, program_.LeafShape(from)->byte_size());
  };
  for (int d = 0; d < g.rank() && d < static_cast<int>(manual.size()); ++d) {
    AxisList whole = manual[d];
    whole.insert(whole.end(), l.dim(d).begin(), l.dim(d).end());
    whole = Canonical(mesh, whole);
    const bool has_manual = g.mesh() == &mesh && IsPrefix(mesh, manual[d], g.dim(d));
    if (AxesSize(whole) > AxesSize(g.dim(d)) && !limits_[global.value]->IsClosed(d)) {
      propose(global, local, d, whole);
    }
    if (has_manual && AxesSize(g.dim(d)) > AxesSize(manual[d]) &&
        !limits_[local.value]->IsClosed(d)) {
      AxisList rest = RemovePrefix(mesh, manual[d], g.dim(d));
      if (AxesSize(rest) > AxesSize(l.dim(d))) propose(local, global, d, std::move(rest));
    }
  }
}

absl::Status PropagationEngine::Visit(uint32_t n, int stage) {
  const Node& node = graph_.node(n);
  switch (node.kind) {
    case NodeKind::kRule: VisitRule(n, node, stage); break;
    case NodeKind::kBoundary: VisitBoundary(n, node); break;
    case NodeKind::kCallbacks:
      // Callbacks take part from level 1, like ops with a rule of their own.
      if (stage < 2)
        Queue(n, 2);
      else
        return VisitCallbacks(n, node);
      break;
  }
  return absl::OkStatus();
}

absl::Status PropagationEngine::Round(int stage) {
  round_.clear();
  NodeQueue& queue = queue_[stage];
  while (!queue.empty()) {
    const uint32_t place = queue.First(), n = graph_.node_at(place);
    if (stage >= 2 && !round_.empty() &&
        graph_.node(n).instr != graph_.node(round_.front()).instr) {
      break;
    }
    round_.push_back(n);
    queue.Erase(place);
  }
  pending_.clear();
  own_offers_.clear();
  own_axes_.clear();
  for (uint32_t n : round_) {
    SHARDCALL_RETURN_IF_ERROR(CheckStop());
    SHARDCALL_RETURN_IF_ERROR(Visit(n, stage));
  }
  auto key = [](const Pending& p) {
    return std::make_tuple(p.offer->kind, -p.bytes, p.from_order, p.offer->dim, p.via_order,
                           p.node);
  };
  std::sort(pending_.begin(), pending_.end(), [&](const Pending& a, const Pending& b) {
    return a.leaf != b.leaf ? a.leaf.value < b.leaf.value : key(a) < key(b);
  });
  for (size_t i = 0; i < pending_.size();) {
    size_t end = i;
    while (end < pending_.size() && pending_[end].leaf == pending_[i].leaf) ++end;
    SHARDCALL_RETURN_IF_ERROR(CheckStop());
    SHARDCALL_RETURN_IF_ERROR(Apply(absl::MakeConstSpan(pending_).subspan(i, end - i)));
    i = end;
  }
  return absl::OkStatus();
}

absl::Status PropagationEngine::RunQueues() {
  for (int stage = 0; stage < kNumStages;) {
    if (queue_[stage].empty()) {
      ++stage;
      continue;
    }
    SHARDCALL_RETURN_IF_ERROR(Round(stage));
    stage = 0;
  }
  return absl::OkStatus();
}

// Members of a shard_as group that still differ take the sharding of the one
// that is fixed by a constraint, else of the most sharded one.
void PropagationEngine::EqualizeGroups() {
  for (const std::vector<LeafId>& group : graph_.shard_as()) {
    auto rank = [&](LeafId l) {
      const Sharding& s = *sharding_[l.value];
      int64_t shards = 1;
      for (int d = 0; d < s.rank(); ++d) shards *= s.num_shards(d);
      const ShardingConstraint* c = constraint_[l.value];
      const bool fixed = c != nullptr && c->shard_as < 0 && c->IsFullyClosed();
      return std::make_tuple(!fixed, -shards, graph_.order()[program_.leaves.instr(l).value]);
    };
    const LeafId chosen = *std::min_element(group.begin(), group.end(),
                                            [&](LeafId a, LeafId b) { return rank(a) < rank(b); });
    const Sharding& from = *sharding_[chosen.value];
    for (LeafId l : group) {
      const Limits& limits = *limits_[l.value];
      const Sharding* s = sharding_[l.value];
      if (l == chosen || s == &from || limits.fixed || s->mesh() != from.mesh()) continue;
      ShardingBuilder b(*s);
      bool allowed = true;
      AxisList others(limits.reserved);
      others.insert(others.end(), b.partial.begin(), b.partial.end());
      others.insert(others.end(), b.manual.begin(), b.manual.end());
      for (int d = 0; d < s->rank(); ++d) {
        if (from.dim(d) == s->dim(d)) continue;
        allowed = allowed && !limits.IsClosed(d) && !Overlaps(from.dim(d), others);
        b.dims[d].assign(from.dim(d).begin(), from.dim(d).end());
      }
      if (!allowed) continue;
      const Sharding* equal = b.Intern(context_);
      if (equal == s) continue;
      sharding_[l.value] = equal;
      for (int d = 0; d < s->rank(); ++d) {
        if (equal->dim(d) == s->dim(d)) continue;
        provenance_.at(l, d) = {
            .from = chosen, .via = program_.leaves.instr(l), .from_dim = static_cast<int16_t>(d)};
      }
      QueueLeaf(l);
    }
  }
}

absl::Status PropagationEngine::Spread(const std::set<int>& priorities) {
  SeedAll(*priorities.begin());
  for (NodeQueue& queue : queue_) queue.Reset(graph_.num_nodes());
  for (int n = 0; n < graph_.num_nodes(); ++n) {
    if (graph_.node(n).kind == NodeKind::kBoundary) Queue(n, 0);
  }
  for (uint32_t l = 0; l < sharding_.size(); ++l) {
    if (sharding_[l] != nullptr && sharding_[l]->HasShardedDim()) QueueLeaf(LeafId(l));
  }
  for (auto it = priorities.begin(); it != priorities.end(); ++it) {
    if (it != priorities.begin()) Activate(*it);
    SHARDCALL_RETURN_IF_ERROR(RunQueues());
  }
  if (graph_.shard_as().empty()) return absl::OkStatus();
  EqualizeGroups();
  SHARDCALL_RETURN_IF_ERROR(RunQueues());
  EqualizeGroups();
  return absl::OkStatus();
}

bool PropagationEngine::KeepIndexedWhole(const CostModel& cost) {
  const std::vector<LeafDim> found =
      IndexedCarries(program_, graph_, cost, {sharding_, constraint_}, &uses_).Find();
  for (const auto& [leaf, dim] : found) kept_whole_[leaf].Insert(dim);
  return !found.empty();
}

void PropagationEngine::Prepare(bool propagate) {
  if (prepared_ == propagate) return;
  prepared_ = propagate;
  seeds_.reset();
  seeded_priority_.reset();
  imposed_.clear();
  branch_results_.clear();
  imposed_constraints_.clear();
  FindConstraints();
  if (!propagate) return;
  ConstrainCarried();
  ConstrainBranches();
}

absl::StatusOr<PropagationResult> PropagationEngine::Run(const PropagationOptions& options) {
  SHARDCALL_RETURN_IF_ERROR(rules_.status());
  SetOrders(options);
  kept_whole_.clear();
  Prepare(options.propagate);
  std::set<int> priorities;
  for (const ShardingConstraint* c : constraint_) {
    if (c == nullptr) continue;
    for (const ShardingConstraint::Dim& d : c->dims) priorities.insert(d.priority);
  }
  priorities.insert(0);
  if (options.propagate) {
    // What is kept whole may let axes go to other dimensions, which loops may index, too. A few
    // rounds bring almost all of the gain, and bound the time.
    constexpr int kRounds = 4;
    SHARDCALL_RETURN_IF_ERROR(Spread(priorities));
    for (int round = 1; round < kRounds && KeepIndexedWhole(options.cost); ++round) {
      SHARDCALL_RETURN_IF_ERROR(Spread(priorities));
    }
    SummedResults(program_, rules_, uses_, constraint_, &sharding_, &provenance_).Shard();
  } else {
    SeedAll(*priorities.rbegin());
  }
  PropagationResult result;
  const int n = program_.leaves.num_leaves();
  result.sharding.resize(n);
  result.kept_whole.resize(n);
  for (int l = 0; l < n; ++l) {
    const LeafId c = program_.leaves.canonical(LeafId(l));
    result.sharding[l] = sharding_[c.value];
    result.kept_whole[l] = !kept_whole_.empty() && kept_whole_.contains(c);
  }
  result.provenance = std::move(provenance_);
  result.outputs = OutputShardings();
  result.conflicts = conflicts_;
  result.choices = options.choices;
  result.met = met_;
  return result;
}

}  // namespace internal
}  // namespace shardcall
