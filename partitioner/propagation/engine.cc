// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/propagation/engine.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include "shardcall/partitioner/propagation/indexed_carries.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall::inline internal {

PropagationEngine::PropagationEngine(const Program& program, RuleTable& rules)
    : program_(program),
      rules_(rules),
      context_(program.module.context()),
      graph_(program, rules),
      provenance_(program) {}

void PropagationEngine::Queue(uint32_t node, int stage) {
  const uint16_t bit = static_cast<uint16_t>(1u << stage);
  if (queued_[node] & bit) return;
  queued_[node] |= bit;
  queue_[stage].push_back({graph_.order()[graph_.node(node).instr.value], node});
  std::push_heap(queue_[stage].begin(), queue_[stage].end(), std::greater<>());
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

const StepResult& PropagationEngine::StepOf(const Node& node, absl::Span<const LeafId> leaves) {
  const ConflictOrder order = OrderOf(node.rule);
  uint64_t hash = reinterpret_cast<uintptr_t>(node.rule);
  for (LeafId l : leaves) {
    hash = MixHash(hash, reinterpret_cast<uintptr_t>(sharding_[l.value]));
    hash = MixHash(hash, reinterpret_cast<uintptr_t>(limits_[l.value]));
  }
  hash = FinishHash(hash);
  const Memo* found = memo_table_.Find(hash, [&](const Memo& m) {
    if (m.rule != node.rule || m.tensors.size() != leaves.size()) return false;
    // Without a conflict all orders have the same result.
    if (m.order != order && m.result.contested) return false;
    for (size_t k = 0; k < leaves.size(); ++k) {
      if (m.tensors[k].sharding != sharding_[leaves[k].value] ||
          m.tensors[k].limits != limits_[leaves[k].value]) {
        return false;
      }
    }
    return true;
  });
  if (found != nullptr) return found->result;
  absl::InlinedVector<StepTensor, 8> tensors;
  for (LeafId l : leaves) tensors.push_back({sharding_[l.value], limits_[l.value]});
  Memo& memo = memos_.emplace_back();
  memo.rule = node.rule;
  memo.order = order;
  memo.tensors = context_.arena().Copy(absl::MakeConstSpan(tensors));
  // Tokens have no sharding; a step sees them as replicated.
  for (StepTensor& t : tensors) {
    if (t.sharding != nullptr) continue;
    t = {ReplicatedSharding(context_, program_.mesh, 0), InternLimits({})};
  }
  memo.result = Step(*node.rule, tensors, order);
  memo_table_.Insert(hash, &memo);
  return memo.result;
}

void PropagationEngine::Propose(LeafId leaf, LeafId from, uint32_t node, const Proposal* p,
                                const BaseMesh* mesh, int64_t bytes) {
  const uint64_t order = (uint64_t{graph_.order()[program_.leaves.instr(from).value]} << 32) |
                         static_cast<uint32_t>(program_.leaves.index(from));
  pending_.push_back(
      {leaf, from, p, mesh, node, graph_.order()[graph_.node(node).instr.value], bytes, order});
}

void PropagationEngine::VisitRule(uint32_t n, const Node& node, int stage) {
  const absl::Span<const LeafId> leaves = graph_.leaves(node);
  const StepResult& step = StepOf(node, leaves);
  if (step.stage == kNumStages) return;
  // A conflict that waits for the aggressive half of its level counts if it is still there when
  // another order would decide it, in the basic half.
  const int basic = step.stage & ~1;
  if (step.contested && stage < basic) {
    Queue(n, basic);
    return;
  }
  if (step.contested) NoteConflict(node, step.contest);
  if (step.stage > stage) {
    Queue(n, step.stage);
    return;
  }
  for (const Proposal& p : step.proposals) {
    Propose(leaves[p.tensor], leaves[p.from], n, &p, step.mesh, node.rule->bytes[p.from]);
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
    own_proposals_.push_back({0, d, 0, d, FactorKind::kPassThrough, std::move(axes)});
    Propose(to, from, n, &own_proposals_.back(), &mesh, program_.LeafShape(from)->byte_size());
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

void PropagationEngine::Note(LeafId leaf, int dim, const Provenance& step) {
  Provenance& noted = provenance_.at(leaf, dim);
  if (step.brought > noted.brought && !noted.constraint) noted = step;
}

absl::Status PropagationEngine::Apply(absl::Span<const Pending> group) {
  const LeafId leaf = group[0].leaf;
  const Sharding* before = sharding_[leaf.value];
  const Limits& limits = *limits_[leaf.value];
  if (limits.fixed) return absl::OkStatus();
  ShardingBuilder b(*before);
  AxisList used(before->used().begin(), before->used().end());
  absl::InlinedVector<std::pair<const Pending*, int64_t>, 4> added;  // with what they bring
  for (const Pending& p : group) {
    if (p.mesh != b.mesh) {
      if (!used.empty() || !limits.reserved.empty()) continue;
      b.mesh = p.mesh;
    }
    const int d = p.proposal->dim;
    if (limits.IsClosed(d)) continue;
    AxisList axes = ExtendFree(*b.mesh, b.dims[d], p.proposal->axes, used, limits.reserved);
    const int64_t brought = AxesSize(axes) / AxesSize(b.dims[d]);
    if (brought <= 1) continue;
    const AxisList add = RemovePrefix(*b.mesh, b.dims[d], axes);
    used.insert(used.end(), add.begin(), add.end());
    b.dims[d] = std::move(axes);
    added.push_back({&p, brought});
  }
  if (added.empty()) return absl::OkStatus();
  const Pending& most =
      *std::max_element(added.begin(), added.end(), [](const auto& x, const auto& y) {
         return x.second < y.second;
       })->first;
  const Sharding* after = b.Intern(context_);
  const int callbacks = graph_.callbacks_of(leaf);
  if (callbacks >= 0 && static_cast<uint32_t>(callbacks) != most.node) {
    SHARDCALL_ASSIGN_OR_RETURN(after, AskUserCallback(graph_.node(callbacks), leaf, after));
    if (after == before) return absl::OkStatus();
  }
  sharding_[leaf.value] = after;
  for (const auto& [p, brought] : added) {
    Note(leaf, p->proposal->dim,
         {.from = p->from,
          .via = graph_.node(p->node).instr,
          .from_dim = static_cast<int16_t>(p->proposal->from_dim),
          .brought = static_cast<int32_t>(brought)});
  }
  QueueLeaf(leaf);
  return absl::OkStatus();
}

absl::Status PropagationEngine::Round(int stage) {
  round_.clear();
  std::vector<std::pair<uint32_t, uint32_t>>& queue = queue_[stage];
  const uint32_t last = stage < 2 ? std::numeric_limits<uint32_t>::max() : queue.front().first;
  while (!queue.empty() && queue.front().first <= last) {
    round_.push_back(queue.front().second);
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    queue.pop_back();
  }
  pending_.clear();
  own_proposals_.clear();
  for (uint32_t n : round_) {
    SHARDCALL_RETURN_IF_ERROR(CheckStop());
    queued_[n] &= static_cast<uint16_t>(~(1u << stage));
    SHARDCALL_RETURN_IF_ERROR(Visit(n, stage));
  }
  auto key = [](const Pending& p) {
    return std::make_tuple(p.leaf.value, p.proposal->kind, -p.bytes, p.from_order, p.proposal->dim,
                           p.via_order, p.node);
  };
  std::sort(pending_.begin(), pending_.end(),
            [&](const Pending& a, const Pending& b) { return key(a) < key(b); });
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
  queued_.assign(graph_.num_nodes(), 0);
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
      IndexedCarries(program_, graph_, cost, {sharding_, constraint_}).Find();
  for (const auto& [leaf, dim] : found) kept_whole_[leaf].Insert(dim);
  return !found.empty();
}

absl::StatusOr<PropagationResult> PropagationEngine::Run(const PropagationOptions& options) {
  SHARDCALL_RETURN_IF_ERROR(rules_.status());
  SetOrders(options);
  imposed_.clear();
  branch_results_.clear();
  imposed_constraints_.clear();
  kept_whole_.clear();
  FindConstraints();
  if (options.propagate) {
    ConstrainCarried();
    ConstrainBranches();
  }
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
    result.kept_whole[l] = kept_whole_.contains(c);
  }
  result.provenance = provenance_;
  result.outputs = OutputShardings();
  result.conflicts = conflicts_;
  result.choices = options.choices;
  result.met = met_;
  return result;
}

}  // namespace shardcall::inline internal
