// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/states/followers.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/sharding/rule/factor_assignment.h"

namespace shardcall {
inline namespace internal {
namespace {

// Of the other values of a term, gives those that are not `given` their states, and adds them to
// `followers`.
void FollowTerm(StateGraph& graph, const StateGraph::Term& term, int v, bool any_op,
                std::vector<int>* states, std::vector<bool>* given, std::vector<int>* followers) {
  const Program& program = graph.program();
  const StateGraph::Value& value = graph.values()[v];
  const Sharding* const state = value.states[(*states)[v]];
  std::optional<FactorAssignment> assignment;
  if (term.op.valid()) {
    const Opcode opcode = program.module.instr(term.op).opcode;
    if (!any_op && !HasTrait(opcode, kElementwise | kMapsElements)) return;
    const ShardingRule& rule = graph.rule(term);
    assignment.emplace(rule, program.mesh, program.manual_axes(term.op),
                       FactorsAllowedByRule(rule));
    const auto at = absl::c_find(term.leaves, value.leaf) - term.leaves.begin();
    assignment->Project(static_cast<int>(at), *state);
    assignment->Normalize();
  }
  for (size_t k = 0; k < term.leaves.size(); ++k) {
    const int u = graph.value_of(term.leaves[k]);
    if (u < 0 || (*given)[u]) continue;
    const Sharding* const wanted =
        assignment.has_value()
            ? assignment->DimSharding(program.module.context(), static_cast<int>(k))
            : state;
    const auto& known = graph.values()[u].states;
    const auto follows = absl::c_find(known, wanted);
    if (follows == known.end() || follows == known.begin()) continue;
    (*states)[u] = static_cast<int>(follows - known.begin());
    (*given)[u] = true;
    followers->push_back(u);
  }
}

}  // namespace

bool Follow(StateGraph& graph, int v, Following how, std::vector<int>* states) {
  std::vector<bool> given(states->size());
  given[v] = true;
  std::vector<int> from = {v};
  for (size_t k = 0; k < from.size() && (k == 0 || how != Following::kNext); ++k) {
    for (const int t : graph.values()[from[k]].terms) {
      FollowTerm(graph, graph.term(t), from[k], how == Following::kThroughAll, states, &given,
                 &from);
    }
  }
  return from.size() > 1;
}

}  // namespace internal
}  // namespace shardcall
