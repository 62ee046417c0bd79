// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/states/state_offers.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/sharding/rule/factor_assignment.h"

namespace shardcall {
inline namespace internal {

namespace {

// Combinations of places of a value's axes.
constexpr double kMostPlaced = 256;

// How much of a dimension may be padding where shards do not divide it: what devices compute for
// nothing, and send, if the value goes elsewhere.
constexpr double kMostPadding = 1.0 / 8;

// A state of the value that shards no dimension.
ShardingBuilder Whole(const StateGraph::Value& v) {
  ShardingBuilder whole(*v.states[0]);
  for (AxisList& dim : whole.dims) dim.clear();
  return whole;
}

}  // namespace

void StateOffers::Add(LeafId leaf, const Sharding* state) {
  const int v = graph_.value_of(leaf);
  const Program& program = graph_.program();
  if (v < 0 || state == nullptr || state->mesh() != program.mesh || !state->partial().empty() ||
      state->is_maximal()) {
    return;
  }
  StateGraph::Value& value = graph_.values()[v];
  if (state->manual() != value.states[0]->manual()) return;
  if (static_cast<int>(value.states.size()) >= most_) return;
  if (absl::c_linear_search(value.states, state)) return;
  const Shape* const shape = program.LeafShape(leaf);
  bool uneven = false;
  for (int d = 0; d < state->rank(); ++d) {
    const int64_t shards = state->num_shards(d), size = shape->dim(d);
    const int64_t padding = CeilDiv(size, shards) * shards - size;
    if (!stated_ && static_cast<double>(padding) > kMostPadding * static_cast<double>(size)) return;
    uneven = uneven || padding > 0;
  }
  if (uneven && !takes_uneven_) {
    uneven_.emplace_back(leaf, state);
    return;
  }
  value.states.push_back(state);
  added_.push_back({v, state, stated_});
}

// What a sum over devices can be reduced to: each device has all of it, or a part.
void StateOffers::AddSum(LeafId leaf, const Sharding& made) {
  Context& context = graph_.program().module.context();
  ShardingBuilder whole(made);
  whole.partial.clear();
  Add(leaf, whole.Intern(context));
  for (int d = 0; !made.partial().empty() && d < made.rank(); ++d) {
    ShardingBuilder scattered = whole;
    scattered.dims[d].insert(scattered.dims[d].end(), made.partial().begin(), made.partial().end());
    Add(leaf, scattered.Intern(context));
  }
}

void StateOffers::Project(const StateGraph::Term& term, size_t t, const Sharding& state,
                          bool sums) {
  const Program& program = graph_.program();
  Context& context = program.module.context();
  if (graph_.IsPointwise(term)) {
    for (LeafId leaf : term.leaves) {
      if (program.LeafShape(leaf)->rank() == state.rank()) Add(leaf, &state);
    }
    return;
  }
  const ShardingRule& rule = graph_.rule(term);
  FactorAssignment a(rule, program.mesh, program.manual_axes(term.op), FactorsAllowedByRule(rule));
  a.Project(static_cast<int>(t), state);
  a.Normalize();
  for (size_t u = 0; u < term.leaves.size(); ++u) {
    if (u == t || graph_.value_of(term.leaves[u]) < 0) continue;
    if (sums) {
      AddSum(term.leaves[u], *a.TensorSharding(context, static_cast<int>(u)));
    } else {
      Add(term.leaves[u], a.DimSharding(context, static_cast<int>(u)));
    }
  }
}

void StateOffers::Spread() {
  while (!added_.empty()) {
    const auto [v, state, stated] = added_.front();
    added_.pop_front();
    stated_ = stated;
    const LeafId leaf = graph_.values()[v].leaf;
    for (int t : graph_.values()[v].terms) {
      const StateGraph::Term& term = graph_.term(t);
      for (size_t k = 0; k < term.leaves.size(); ++k) {
        if (term.leaves[k] != leaf) continue;
        if (term.op.valid()) {
          Project(term, k, *state, /*sums=*/false);
        } else {
          for (LeafId other : term.leaves) Add(other, state);
        }
      }
    }
  }
  stated_ = false;
}

void StateOffers::NearTraffic() {
  for (const StateGraph::Term& term : graph_.terms()) {
    if (!term.op.valid()) {
      const Sharding* const from = graph_.FirstState(term, 0);
      const Sharding* const to = graph_.MovesTo(term);
      if (from == to) continue;
      stated_ = true;
      Add(term.leaves.front(), to);
      Add(term.leaves.back(), from);
      stated_ = false;
      continue;
    }
    const Decision& d = graph_.FirstDecision(term);
    if (d.bytes == 0) continue;
    const size_t operands = d.operands.size();
    for (size_t k = 0; k < operands; ++k) Add(term.leaves[k], d.operands[k]);
    for (size_t k = 0; k < d.produced.size(); ++k) {
      if (d.produced[k] != nullptr) AddSum(term.leaves[operands + k], *d.produced[k]);
    }
    stated_ = true;
    for (size_t k = 0; k < term.leaves.size(); ++k) {
      const Sharding* const s = graph_.FirstState(term, k);
      if (s != nullptr && s->HasShardedDim()) Project(term, k, *s, /*sums=*/true);
    }
    stated_ = false;
  }
  Spread();
}

void StateOffers::InBatch(int axis, int dim) {
  const Program& program = graph_.program();
  for (const StateGraph::Term& term : graph_.terms()) {
    if (!term.op.valid() || program.module.instr(term.op).opcode != Opcode::kDot) continue;
    const int v = graph_.value_of(term.leaves.back());
    if (v < 0 || graph_.FirstDecision(term).bytes == 0) continue;
    const StateGraph::Value& value = graph_.values()[v];
    const auto& attrs = program.module.instr(term.op).as<DotAttrs>();
    if (axis >= static_cast<int>(value.free.size()) ||
        dim >= static_cast<int>(attrs.lhs_batch.size())) {
      continue;
    }
    ShardingBuilder moved(*value.states[0]);
    for (AxisList& d : moved.dims) d = Minus(*program.mesh, d, {value.free[axis]});
    moved.dims[dim].insert(moved.dims[dim].begin(), value.free[axis]);
    Add(term.leaves.back(), moved.Intern(program.module.context()));
  }
  Spread();
}

std::vector<const Sharding*> StateOffers::Moves(StateGraph& graph, int v) {
  const Program& program = graph.program();
  const StateGraph::Value& value = graph.values()[v];
  std::vector<const Sharding*> out;
  for (const AxisRef axis : value.free) {
    ShardingBuilder without(*value.states[0]);
    for (AxisList& dim : without.dims) dim = Minus(*program.mesh, dim, {axis});
    for (size_t d = 0; d < without.dims.size(); ++d) {
      ShardingBuilder moved = without;
      moved.dims[d].push_back(axis);
      const Sharding* const state = moved.Intern(program.module.context());
      if (state != value.states[0]) out.push_back(state);
    }
  }
  return out;
}

void StateOffers::From(LeafId leaf, const Sharding* state) {
  Add(leaf, state);
  Spread();
}

void StateOffers::Everywhere() {
  const Program& program = graph_.program();
  Context& context = program.module.context();
  for (const StateGraph::Value& v : graph_.values()) {
    const ShardingBuilder whole = Whole(v);
    Add(v.leaf, whole.Intern(context));
    for (size_t d = 0; d < whole.dims.size(); ++d) {
      ShardingBuilder b = whole;
      b.dims[d] = v.free;
      Add(v.leaf, b.Intern(context));
    }
  }
  added_.clear();
}

void StateOffers::Uneven() {
  takes_uneven_ = true;
  // Those of too much padding were left out before.
  stated_ = true;
  for (const auto& [leaf, state] : std::exchange(uneven_, {})) Add(leaf, state);
  stated_ = false;
  Spread();
}

void StateOffers::All(absl::Span<const int> states) {
  const Program& program = graph_.program();
  for (size_t n = 0; n < graph_.values().size(); ++n) {
    StateGraph::Value& v = graph_.values()[n];
    v.states = {v.states[states[n]]};
    const int rank = v.states[0]->rank();
    // A place for each axis: behind the axes of a dimension, or, 0, nowhere.
    const int axes = static_cast<int>(v.free.size());
    const absl::InlinedVector<int, 4> places(axes, rank + 1);
    if (std::pow(rank + 1, axes) > kMostPlaced) continue;
    for (const bool forward : {true, false}) {
      ForAllValues(places, [&](absl::Span<const int> at) {
        ShardingBuilder b = Whole(v);
        for (int k = 0; k < axes; ++k) {
          const int a = forward ? k : axes - 1 - k;
          if (at[a] > 0) b.dims[at[a] - 1].push_back(v.free[a]);
        }
        Add(v.leaf, b.Intern(program.module.context()));
      });
    }
  }
  added_.clear();
}

void StateOffers::Neighbours(absl::Span<const int> states) {
  const Program& program = graph_.program();
  const BaseMesh& mesh = *program.mesh;
  Context& context = program.module.context();
  for (size_t n = 0; n < graph_.values().size(); ++n) {
    StateGraph::Value& v = graph_.values()[n];
    v.states = {v.states[states[n]]};
  }
  std::vector<bool> near(graph_.values().size(), false);
  for (const StateGraph::Term& term : graph_.terms()) {
    const bool sends = !term.op.valid() || graph_.FirstDecision(term).bytes > 0;
    for (int v : term.values) near[v] = near[v] || sends;
  }
  for (size_t n = 0; n < near.size(); ++n) {
    if (!near[n]) continue;
    const StateGraph::Value& v = graph_.values()[n];
    const Sharding* const now = v.states[0];
    for (const AxisRef axis : v.free) {
      ShardingBuilder without(*now);
      for (AxisList& dim : without.dims) dim = Minus(mesh, dim, {axis});
      Add(v.leaf, without.Intern(context));
      for (int d = 0; d < now->rank(); ++d) {
        ShardingBuilder front = without, back = without;
        front.dims[d].insert(front.dims[d].begin(), axis);
        back.dims[d].push_back(axis);
        Add(v.leaf, front.Intern(context));
        Add(v.leaf, back.Intern(context));
      }
    }
  }
  added_.clear();
}

}  // namespace internal
}  // namespace shardcall
