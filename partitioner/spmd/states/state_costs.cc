// SPDX-License-Identifier: Apache-2.0
// The costs of a StateGraph's terms.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/base/casts.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/states/state_graph.h"

namespace shardcall {
inline namespace internal {

double StateGraph::MoveSeconds(const Shape* shape, const Sharding* from, const Sharding* to) {
  if (from == to) return 0;
  const auto [known, is_new] = moves_.try_emplace({shape, from, to}, 0);
  if (is_new) {
    const Traffic traffic = table_.ReshardTraffic(shape, from, nullptr, to);
    known->second = traffic.collectives > 0 ? options_.cost.Seconds(traffic) : 0;
  }
  return known->second;
}

const Decision& StateGraph::DecisionOf(const Term& term, absl::Span<const Sharding* const> states) {
  const size_t operands = num_operands(term);
  const States from(states.begin(), states.begin() + operands);
  const States wanted(states.begin() + operands, states.end());
  Circumstances c;
  c.places = table_.PlacesOf(term.op);
  return *decider_.Decide(term.op, *rules_.rule(term.op), from, wanted, c)->decision;
}

const Decision& StateGraph::FirstDecision(const Term& term) {
  States states;
  for (size_t k = 0; k < term.leaves.size(); ++k) states.push_back(FirstState(term, k));
  return DecisionOf(term, states);
}

const Sharding* StateGraph::MovesTo(const Term& term) const {
  return term.output >= 0 ? output(term.output) : FirstState(term, term.leaves.size() - 1);
}

double StateGraph::FirstSeconds(const Term& term) {
  if (term.op.valid()) {
    const Decision& d = FirstDecision(term);
    return d.bytes == 0 ? 0 : term.runs * d.seconds;
  }
  return term.runs *
         MoveSeconds(program_.LeafShape(term.leaves[0]), FirstState(term, 0), MovesTo(term));
}

std::vector<int> StateGraph::DearestValues(size_t most) {
  std::vector<std::pair<double, int>> dearest;  // by term
  for (const Term& term : terms_) {
    int largest = -1;
    int64_t size = 0;
    for (const int v : term.values) {
      const int64_t elements = program_.LeafShape(values_[v].leaf)->num_elements();
      if (elements > size) largest = v, size = elements;
    }
    const double seconds = largest < 0 ? 0 : FirstSeconds(term);
    if (seconds > 0) dearest.emplace_back(seconds, largest);
  }
  std::stable_sort(dearest.begin(), dearest.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<int> out;
  for (const auto& [seconds, v] : dearest) {
    if (out.size() < most && !absl::c_linear_search(out, v)) out.push_back(v);
  }
  return out;
}

bool StateGraph::IsPointwise(const Term& term) const {
  const Instruction& instr = module_.instr(term.op);
  return HasTrait(instr.opcode, kElementwise) && instr.shape->IsArray() &&
         invariants_.OfOperands(term.op).empty() && absl::c_all_of(term.leaves, [&](LeafId leaf) {
           const Shape* const shape = program_.LeafShape(leaf);
           return shape->IsArray() && (shape->rank() == 0 || shape->dims() == instr.shape->dims());
         });
}

void StateGraph::AddWay(const Term& term, absl::Span<const Sharding* const> states,
                        std::vector<Way>* ways) {
  const Decision& d = DecisionOf(term, states);
  Way way{{}, d.seconds};
  const size_t operands = num_operands(term);
  for (size_t k = 0; k < term.leaves.size(); ++k) {
    const Shape* const shape = program_.LeafShape(term.leaves[k]);
    const bool result = k >= operands;
    way.states.push_back(result ? d.produced[k - operands] : d.operands[k]);
    const bool repeated = std::find(term.leaves.begin(), term.leaves.begin() + k, term.leaves[k]) !=
                          term.leaves.begin() + k;
    if (states[k] == nullptr || repeated) continue;
    way.seconds -= result ? MoveSeconds(shape, way.states[k], states[k])
                          : MoveSeconds(shape, states[k], way.states[k]);
  }
  for (Way& known : *ways) {
    if (known.states != way.states) continue;
    known.seconds = std::min(known.seconds, way.seconds);
    return;
  }
  ways->push_back(std::move(way));
}

// The ways that the plan takes between the first states; if one leaf has another state; and if all
// leaves have the states that follow by the rule from that of one, alone or with the first states
// of the others.
std::vector<StateGraph::Way> StateGraph::WaysOf(const Term& term) {
  std::vector<Way> ways;
  std::vector<States> tried;
  const auto add = [&](const States& states) {
    if (absl::c_linear_search(tried, states)) return;
    tried.push_back(states);
    AddWay(term, states, &ways);
  };
  States first;
  for (size_t k = 0; k < term.leaves.size(); ++k) first.push_back(FirstState(term, k));
  add(first);
  const bool pointwise = IsPointwise(term);
  const ShardingRule& op_rule = rule(term);
  const IndexSet allowed = FactorsAllowedByRule(op_rule);
  for (size_t k = 0; k < term.leaves.size(); ++k) {
    for (const Sharding* s : StatesOf(term, k)) {
      if (s == nullptr || s->mesh() != program_.mesh || !s->partial().empty()) continue;
      States others = first;
      if (pointwise) {
        if (s->rank() == 0) continue;
        for (const Sharding*& a : others) a = a->rank() == 0 ? a : s;
        add(others);
        continue;
      }
      others[k] = s;
      add(others);
      for (const bool with_first : {false, true}) {
        FactorAssignment a(op_rule, program_.mesh, program_.manual_axes(term.op), allowed);
        a.Project(static_cast<int>(k), *s);
        for (size_t u = 0; with_first && u < first.size(); ++u) {
          if (u != k && first[u] != nullptr) a.Project(static_cast<int>(u), *first[u]);
        }
        a.Normalize();
        for (size_t u = 0; u < first.size(); ++u) {
          others[u] =
              first[u] == nullptr ? nullptr : a.DimSharding(module_.context(), static_cast<int>(u));
        }
        add(others);
      }
    }
  }
  return ways;
}

std::vector<StateGraph::LeafMoves> StateGraph::MovesOf(const Term& term, absl::Span<const Way> ways,
                                                       bool shared_copies) {
  std::vector<LeafMoves> out;
  const size_t operands = num_operands(term);
  const Invariants::Shares shares = invariants_.OfOperands(term.op);
  for (size_t k = 0; k < term.leaves.size(); ++k) {
    const LeafId leaf = term.leaves[k];
    const Shape* const shape = program_.LeafShape(leaf);
    if (!shape->IsArray() || IsRepeated(term.leaves, k)) continue;
    double share = k < shares.size() ? shares[k] : 1;
    if (shared_copies && k < operands) share /= std::max(1, readers_[leaf.value]);
    LeafMoves& moves = out.emplace_back();
    moves.place = PlaceOf(term, k);
    for (const Sharding* s : StatesOf(term, k)) {
      for (const Way& way : ways) {
        double seconds = 0;
        if (k >= operands) {
          seconds = MoveSeconds(shape, way.states[k], s);
        } else {
          for (size_t u = k; u < operands; ++u) {  // where the op reads it again in another state
            if (term.leaves[u] != leaf) continue;
            const auto until = way.states.begin() + u;
            const bool known = u > k && std::find(way.states.begin() + k, until, *until) != until;
            if (!known) seconds += share * MoveSeconds(shape, s, way.states[u]);
          }
        }
        moves.seconds.push_back(seconds);
      }
    }
  }
  return out;
}

void StateGraph::AddTables(const Term& term, bool shared_copies, double most_decided,
                           std::vector<int>* sizes, std::vector<CostTable>* tables) {
  absl::InlinedVector<int, 8> own_sizes;
  for (int v : term.values) own_sizes.push_back((*sizes)[v]);
  CostTable table;
  table.variables = term.values;
  if (!term.op.valid()) {
    const auto state = [&](size_t k, absl::Span<const int> at) {
      const int place = PlaceOf(term, k);
      return StatesOf(term, k)[place < 0 ? 0 : at[place]];
    };
    ForAllValues(own_sizes, [&](absl::Span<const int> at) {
      const Sharding* const to =
          term.output >= 0 ? propagation_.outputs[term.output] : state(1, at);
      const Shape* const shape = program_.LeafShape(term.leaves[0]);
      table.cost.push_back(term.runs * MoveSeconds(shape, state(0, at), to));
    });
    tables->push_back(std::move(table));
    return;
  }
  const OpCosts& costs = CostsOf(term, shared_copies, most_decided, own_sizes);
  if (!costs.joint.empty()) {
    for (double seconds : costs.joint) table.cost.push_back(term.runs * seconds);
    tables->push_back(std::move(table));
    return;
  }
  const int variable = static_cast<int>(sizes->size());
  sizes->push_back(static_cast<int>(costs.ways.size()));
  table.variables = {variable};
  for (double seconds : costs.given) table.cost.push_back(term.runs * seconds);
  tables->push_back(std::move(table));
  for (const LeafMoves& m : costs.moves) {
    if (m.place < 0) continue;
    CostTable& pair = tables->emplace_back();
    pair.variables = {term.values[m.place], variable};
    for (double seconds : m.seconds) pair.cost.push_back(term.runs * seconds);
  }
}

std::vector<uintptr_t> StateGraph::KeyOf(const Term& term, bool shared_copies) const {
  std::vector<uintptr_t> key = {reinterpret_cast<uintptr_t>(rules_.rule(term.op)),
                                static_cast<uintptr_t>(module_.instr(term.op).opcode)};
  for (double share : invariants_.OfOperands(term.op)) {
    key.push_back(absl::bit_cast<uintptr_t>(share));
  }
  for (size_t k = 0; k < term.leaves.size(); ++k) {
    const LeafId leaf = term.leaves[k];
    const int v = value_of(leaf);
    const auto first = absl::c_find(term.leaves, leaf) - term.leaves.begin();
    key.push_back(static_cast<uintptr_t>(first) << 32 | (v < 0 ? 0 : values_[v].states.size()));
    if (shared_copies) key.push_back(static_cast<uintptr_t>(readers_[leaf.value]));
    if (v < 0) {
      key.push_back(reinterpret_cast<uintptr_t>(FirstState(term, k)));
      continue;
    }
    // Tables are by the order of the values.
    key.push_back(static_cast<uintptr_t>(PlaceOf(term, k)));
    for (const Sharding* s : values_[v].states) key.push_back(reinterpret_cast<uintptr_t>(s));
  }
  return key;
}

std::vector<double> StateGraph::DecidedCosts(const Term& term, absl::Span<const int> sizes) {
  const Invariants::Shares shares = invariants_.OfOperands(term.op);
  States states;
  absl::InlinedVector<int, 4> places;
  for (size_t k = 0; k < term.leaves.size(); ++k) {
    states.push_back(FirstState(term, k));
    const int v = value_of(term.leaves[k]);
    places.push_back(v < 0 ? -1
                           : static_cast<int>(absl::c_find(term.values, v) - term.values.begin()));
  }
  std::vector<double> out;
  ForAllValues(sizes, [&](absl::Span<const int> at) {
    for (size_t k = 0; k < states.size(); ++k) {
      if (places[k] >= 0) states[k] = values_[term.values[places[k]]].states[at[places[k]]];
    }
    const Decision& d = DecisionOf(term, states);
    double seconds = d.seconds;
    for (size_t k = 0; k < shares.size(); ++k) {
      const Shape* const shape = program_.LeafShape(term.leaves[k]);
      seconds -= (1 - shares[k]) * MoveSeconds(shape, states[k], d.operands[k]);
    }
    out.push_back(seconds);
  });
  return out;
}

const StateGraph::OpCosts& StateGraph::CostsOf(const Term& term, bool shared_copies,
                                               double most_decided, absl::Span<const int> sizes) {
  std::unique_ptr<OpCosts>& known = costs_[KeyOf(term, shared_copies)];
  if (known != nullptr) return *known;
  known = std::make_unique<OpCosts>();
  OpCosts& c = *known;
  double joint = 1;
  for (int size : sizes) joint *= size;
  if (joint <= most_decided && !shared_copies && joint <= static_cast<double>(decisions_left_)) {
    decisions_left_ -= static_cast<int64_t>(joint);
    c.joint = DecidedCosts(term, sizes);
    return c;
  }
  c.ways = WaysOf(term);
  c.moves = MovesOf(term, c.ways, shared_copies);
  for (const Way& w : c.ways) c.given.push_back(w.seconds);
  for (const LeafMoves& m : c.moves) {
    for (size_t w = 0; m.place < 0 && w < c.ways.size(); ++w) c.given[w] += m.seconds[w];
  }
  constexpr double kMostJoint = 1024;
  if (joint > kMostJoint) return c;
  ForAllValues(sizes, [&](absl::Span<const int> at) {
    double least = std::numeric_limits<double>::infinity();
    for (size_t w = 0; w < c.ways.size(); ++w) {
      double sum = c.given[w];
      for (const LeafMoves& m : c.moves) {
        if (m.place >= 0) sum += m.seconds[at[m.place] * c.ways.size() + w];
      }
      least = std::min(least, sum);
    }
    c.joint.push_back(least);
  });
  return c;
}

}  // namespace internal
}  // namespace shardcall
