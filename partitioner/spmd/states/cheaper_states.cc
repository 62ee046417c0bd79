// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/states/cheaper_states.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "shardcall/partitioner/spmd/states/common_copies.h"
#include "shardcall/partitioner/spmd/states/followers.h"
#include "shardcall/partitioner/spmd/states/min_sum.h"
#include "shardcall/partitioner/spmd/states/narrowed_results.h"
#include "shardcall/partitioner/spmd/states/state_graph.h"
#include "shardcall/partitioner/spmd/states/state_offers.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall {
inline namespace internal {
namespace {

// How much is tried, by the size of a program.
struct Effort {
  size_t most_terms;
  int states;         // of a value
  int rounds;         // the first, and those among the neighbours of what was found
  int neighbours;     // states of a value then
  double decided;     // combinations of an op's states that are decided one by one, at most,
  int64_t decisions;  // and of all ops
  size_t table;       // entries of the largest one
  int moves;          // plans that follow from a move of one axis in one value
  int singles;        // plans that differ from the best one in one value
  int few;            // states of a value in a round before, and
  size_t few_table;   // entries of a table: other sums are left out then
};
constexpr Effort kEfforts[] = {{16, 5, 4, 16, 1400, 1000, 1 << 14, 32, 200, 0, 0},
                               {40, 5, 3, 8, 128, 1000, 1 << 14, 32, 0, 0, 0},
                               {100, 4, 2, 5, 0, 0, 1 << 10, 32, 0, 0, 0},
                               {SIZE_MAX, 5, 2, 4, 0, 0, 1 << 10, 16, 0, 3, 1 << 8}};

const Effort& EffortFor(size_t terms) {
  return *absl::c_find_if(kEfforts, [&](const Effort& e) { return terms <= e.most_terms; });
}

std::vector<int> Solve(StateGraph& graph, bool shared_copies, const Effort& effort, size_t table) {
  std::vector<int> sizes;
  for (const StateGraph::Value& v : graph.values()) {
    sizes.push_back(static_cast<int>(v.states.size()));
  }
  std::vector<CostTable> tables;
  for (const StateGraph::Term& term : graph.terms()) {
    if (absl::c_all_of(term.values, [&](int v) { return sizes[v] == 1; })) continue;
    graph.AddTables(term, shared_copies, effort.decided, &sizes, &tables);
  }
  std::vector<int> states = MinimizeSum(sizes, std::move(tables), table);
  states.resize(graph.values().size());
  return states;
}

class Search {
 public:
  Search(const Program& program, RuleTable& rules, const SpmdOptions& options, PlanMemo& memo,
         const PropagationResult& propagation, Plan* plan)
      : program_(program),
        rules_(rules),
        options_(options),
        memo_(memo),
        plan_(*plan),
        graph_(program, propagation, rules, options, memo),
        effort_(EffortFor(graph_.terms().size())),
        best_(graph_.values().size(), nullptr),
        propagated_fallbacks_(plan->fallbacks.size()),
        propagated_cost_{plan->bytes, plan->seconds},
        worthwhile_seconds_((1 - kWorthwhileSaving) * plan->seconds),
        most_memory_(MemoryOf(propagation)) {
    // Little memory does not matter, as long as no bound forbids it.
    const int64_t left = options.max_memory > most_memory_ ? options.max_memory - most_memory_ : 0;
    graph_.LimitDecisions(effort_.decisions);
    most_memory_ +=
        std::min(left, std::max(RoomForLoops(most_memory_, options.max_memory), kLittleMemory));
  }

  // True if it has found a plan that takes less time.
  absl::StatusOr<bool> Run() {
    if (graph_.values().empty()) return false;
    if (effort_.few > 0) {
      Offer(effort_.few);
      SHARDCALL_RETURN_IF_ERROR(TryCheapestSum(effort_.few_table).status());
      StartAnew();
    }
    Offer(effort_.states);
    // Small arrays are best gathered once, and what follows computed on all devices.
    SHARDCALL_RETURN_IF_ERROR(Try(AllReplicated(/*offered=*/true)).status());
    const int axes = program_.mesh->num_axes();
    for (int axis = 0; effort_.singles > 0 && axes > 1 && axis < axes; ++axis) {
      SHARDCALL_RETURN_IF_ERROR(Try(OverOneAxis(axis)).status());
    }
    for (int round = 0; round < effort_.rounds; ++round) {
      SHARDCALL_ASSIGN_OR_RETURN(const bool better, TryCheapestSum(effort_.table));
      if (!better && round > 0) break;
      StateOffers(graph_, effort_.neighbours).Neighbours(Best());
    }
    SHARDCALL_ASSIGN_OR_RETURN(const bool moved, TryInBatch());
    if (moved) {
      StateOffers(graph_, effort_.neighbours).Neighbours(Best());
      SHARDCALL_RETURN_IF_ERROR(TryCheapestSum(effort_.table).status());
    }
    SHARDCALL_RETURN_IF_ERROR(TryMoves());
    SHARDCALL_RETURN_IF_ERROR(TryOneByOne());
    for (const std::vector<int>& states : {Best(), AllReplicated(/*offered=*/false)}) {
      SHARDCALL_RETURN_IF_ERROR(Try(states, /*common_copies=*/true).status());
    }
    if (before_.has_value() && before_->plan.seconds < plan_.seconds) Take(*std::move(before_));
    return found_.has_value();
  }
  PropagationResult TakeFound() { return *std::move(found_); }

 private:
  static constexpr double kMoreOfCopies = 1.6;
  static constexpr int64_t kLittleMemory = int64_t{64} << 20;
  static constexpr int kMostSingle = 24, kMostBatchDims = 2;
  static constexpr size_t kMostDear = 8;

  struct Found {
    Plan plan;
    PropagationResult states;
  };
  void Take(Found found) {
    plan_ = std::move(found.plan);
    found_ = std::move(found.states);
  }
  // Puts what has been found aside, as what is near it may be worse than what is found elsewhere.
  void StartAnew() {
    for (StateGraph::Value& v : graph_.values()) v.states.resize(1);
    if (!found_.has_value()) return;
    before_ = Found{std::move(plan_), *std::move(found_)};
    plan_ = *std::move(propagated_);
    propagated_.reset();
    found_.reset();
    absl::c_fill(best_, nullptr);
  }

  void Offer(int states) {
    StateOffers offers(graph_, states);
    offers.NearTraffic();
    offers.Everywhere();
    offers.Uneven();
  }

  // Tries the states whose ops and reshards cost least, each by itself.
  absl::StatusOr<bool> TryCheapestSum(size_t table) {
    bool better = false;
    for (const bool shared_copies : {false, true}) {
      SHARDCALL_ASSIGN_OR_RETURN(const bool taken,
                                 Try(Solve(graph_, shared_copies, effort_, table)));
      better = better || taken;
    }
    return better;
  }

  // Plans the states, and takes them if that is the best plan so far.
  absl::StatusOr<bool> Try(const std::vector<int>& states, bool common_copies = false) {
    PropagationResult result = graph_.With(states);
    absl::StatusOr<Plan> made = MakeNarrowPlan(program_, result, rules_, options_, &memo_);
    if (!made.ok()) {
      SHARDCALL_RETURN_IF_ERROR(CheckStop());
      return false;
    }
    if (common_copies) {
      SHARDCALL_RETURN_IF_ERROR(
          ChooseCommonCopies(program_, rules_, options_, memo_, &result, &*made));
    }
    const bool slower = made->seconds >= std::min(plan_.seconds * (1 - 1e-9), worthwhile_seconds_);
    const bool dearer =
        IsDearer(*made) || (common_copies && made->bytes > kMoreOfCopies * plan_.bytes);
    const bool gathers = made->fallbacks.size() > propagated_fallbacks_;
    if (slower || dearer || gathers || MemoryOf(result) > most_memory_) return false;
    if (!propagated_.has_value()) propagated_ = std::move(plan_);
    Take({*std::move(made), std::move(result)});
    for (size_t v = 0; v < states.size(); ++v) best_[v] = graph_.values()[v].states[states[v]];
    return true;
  }

  bool IsDearer(const Plan& made) const {
    return made.bytes > most_bytes_ ||
           !BytesAreWorthIt({made.bytes, made.seconds}, propagated_cost_);
  }

  // An axis in a dimension of the batch of products, as in attention whose heads or sequences are
  // brought together: that takes another state of many values at once.
  absl::StatusOr<bool> TryInBatch() {
    bool moved = false;
    for (int axis = 0; axis < program_.mesh->num_axes(); ++axis) {
      for (int dim = 0; dim < kMostBatchDims; ++dim) {
        SHARDCALL_ASSIGN_OR_RETURN(const bool taken, TryInBatch(axis, dim));
        moved = moved || taken;
      }
    }
    return moved;
  }
  absl::StatusOr<bool> TryInBatch(int axis, int dim) {
    return TryOffered([&](StateOffers offers) { offers.InBatch(axis, dim); });
  }

  // Tries the second state of each value that gets one by `offer`, all of them together.
  absl::StatusOr<bool> TryOffered(absl::FunctionRef<void(StateOffers)> offer) {
    std::vector<StateGraph::Value>& values = graph_.values();
    std::vector<decltype(StateGraph::Value::states)> known;
    for (StateGraph::Value& v : values) {
      known.push_back(v.states);
      v.states.resize(1);
    }
    offer(StateOffers(graph_, /*most=*/2));
    std::vector<int> states;
    bool differs = false;
    for (size_t v = 0; v < values.size(); ++v) {
      const Sharding* const state = values[v].states.back();
      values[v].states = std::move(known[v]);
      states.push_back(NumberOf(state, values[v]));
      differs = differs || states.back() != 0;
    }
    if (!differs) return false;
    return Try(states);
  }

  // An axis in another dimension of a value that the dearest ops read or make, and what follows
  // from that for others: rows over an axis of which the weights had the columns. Such plans send
  // no more: what takes less time for more bytes is near the best one already.
  absl::Status TryMoves() {
    const absl::Cleanup any_bytes = [&] { most_bytes_ = std::numeric_limits<double>::infinity(); };
    int left = effort_.moves;
    absl::flat_hash_set<std::pair<int, const Sharding*>> tried;
    for (bool better = true; better && left > 0;) {
      KeepBest();
      most_bytes_ = plan_.bytes;
      SHARDCALL_ASSIGN_OR_RETURN(better, TryNextMove(&left, &tried));
    }
    return absl::OkStatus();
  }
  // The first that is better of those that were not `tried`, of which `left` are.
  absl::StatusOr<bool> TryNextMove(int* left,
                                   absl::flat_hash_set<std::pair<int, const Sharding*>>* tried) {
    for (const int v : graph_.DearestValues(kMostDear)) {
      for (const Sharding* state : StateOffers::Moves(graph_, v)) {
        if (!tried->insert({v, state}).second) continue;
        if ((*left)-- == 0) return false;
        const LeafId leaf = graph_.values()[v].leaf;
        SHARDCALL_ASSIGN_OR_RETURN(
            const bool better, TryOffered([&](StateOffers offers) { offers.From(leaf, state); }));
        if (better) return true;
      }
    }
    return false;
  }

  // The values have their best states alone.
  void KeepBest() {
    const std::vector<int> best = Best();
    for (size_t v = 0; v < best.size(); ++v) {
      auto& states = graph_.values()[v].states;
      states = {states[best[v]]};
    }
  }

  // Plans that differ from the best one in the state of one value, in any that it may have. The
  // sums that were minimized leave out what only a plan tells.
  absl::Status TryOneByOne() {
    int left = effort_.singles;
    for (bool better = left > 0; better;) {
      better = false;
      StateOffers(graph_, kMostSingle).All(Best());
      std::vector<StateGraph::Value>& values = graph_.values();
      std::vector<int> states(values.size(), 0);
      for (size_t v = 0; v < values.size(); ++v) {
        for (size_t s = 1; s < values[v].states.size(); ++s) {
          if (left-- == 0) return absl::OkStatus();
          states[v] = static_cast<int>(s);
          SHARDCALL_ASSIGN_OR_RETURN(bool taken, Try(states));
          for (const Following how : {Following::kNext, Following::kOn, Following::kThroughAll}) {
            if (taken || left == 0) break;
            if (!Follow(graph_, static_cast<int>(v), how, &states)) continue;
            --left;
            SHARDCALL_ASSIGN_OR_RETURN(taken, Try(states));
          }
          for (size_t u = 0; u < values.size(); ++u) {
            if (taken) std::swap(values[u].states[0], values[u].states[states[u]]);
            states[u] = 0;
          }
          better = better || taken;
        }
      }
    }
    return absl::OkStatus();
  }

  // The states of propagation without the other axes.
  std::vector<int> OverOneAxis(int axis) {
    AxisList others;
    for (int a = 0; a < program_.mesh->num_axes(); ++a) {
      if (a != axis) others.push_back(program_.mesh->FullAxis(a));
    }
    std::vector<int> out;
    for (StateGraph::Value& v : graph_.values()) {
      ShardingBuilder b(*v.states[0]);
      for (AxisList& dim : b.dims) dim = Minus(*program_.mesh, dim, others);
      out.push_back(NumberOf(b.Intern(program_.module.context()), v));
    }
    return out;
  }

  // All values whole, or only those that have that state.
  std::vector<int> AllReplicated(bool offered) {
    std::vector<int> out;
    for (StateGraph::Value& v : graph_.values()) {
      const Sharding& s = *v.states[0];
      const Sharding* const whole =
          ReplicatedSharding(program_.module.context(), s.mesh(), s.rank(), s.manual());
      const bool skips = offered && !absl::c_linear_search(v.states, whole);
      out.push_back(skips ? 0 : NumberOf(whole, v));
    }
    return out;
  }

  // The number of a state of `v`, which gets it if it does not have it.
  static int NumberOf(const Sharding* state, StateGraph::Value& v) {
    const auto known = absl::c_find(v.states, state);
    const int number = static_cast<int>(known - v.states.begin());
    if (known == v.states.end()) v.states.push_back(state);
    return number;
  }

  // The numbers of the best states.
  std::vector<int> Best() {
    std::vector<int> out(best_.size(), 0);
    for (size_t v = 0; v < best_.size(); ++v) {
      const auto& states = graph_.values()[v].states;
      if (best_[v] == nullptr) continue;
      out[v] = static_cast<int>(absl::c_find(states, best_[v]) - states.begin());
    }
    return out;
  }

  int64_t MemoryOf(const PropagationResult& result) {
    return PlanTable(program_, result, options_, &memo_.copies, &memo_.facts).WantedMemory();
  }

  const Program& program_;
  RuleTable& rules_;
  const SpmdOptions& options_;
  PlanMemo& memo_;
  Plan& plan_;
  StateGraph graph_;
  const Effort& effort_;
  std::vector<const Sharding*> best_;  // by value; null: that of propagation
  const size_t propagated_fallbacks_;
  const ProgramCost propagated_cost_;
  const double worthwhile_seconds_;  // seconds of a plan that is worth another sharding
  double most_bytes_ = std::numeric_limits<double>::infinity();  // of a plan that is taken
  int64_t most_memory_;
  std::optional<PropagationResult> found_;
  std::optional<Plan> propagated_;  // the plan in place of which another one was found
  std::optional<Found> before_;     // put aside
};

}  // namespace

bool BytesAreWorthIt(const ProgramCost& chosen, const ProgramCost& propagated) {
  constexpr double kMuchLess = 0.45, kFewMore = 4;
  if (chosen.bytes <= propagated.bytes) return true;
  const bool few = propagated.bytes == 0 || chosen.bytes <= kFewMore * propagated.bytes;
  return chosen.seconds <= (few ? kTimeForBytes : kMuchLess) * propagated.seconds;
}

absl::Status ChooseCheaperStates(const Program& program, RuleTable& rules,
                                 const SpmdOptions& options, PlanMemo& memo,
                                 PropagationResult* propagation, Plan* plan) {
  if (!LooksAhead(program, options)) {
    return ChooseCommonCopies(program, rules, options, memo, propagation, plan);
  }
  const double bytes = plan->bytes, seconds = plan->seconds;
  Search search(program, rules, options, memo, *propagation, plan);
  SHARDCALL_ASSIGN_OR_RETURN(const bool found, search.Run());
  if (!found) {
    return ChooseCommonCopies(program, rules, options, memo, propagation, plan);
  }
  PropagationResult chosen = search.TakeFound();
  if (chosen.common_copies.empty()) {
    SHARDCALL_RETURN_IF_ERROR(ChooseCommonCopies(program, rules, options, memo, &chosen, plan));
  }
  for (int l = 0; l < program.leaves.num_leaves(); ++l) {
    const Sharding* const before = propagation->sharding[l];
    if (chosen.sharding[l] != before) chosen.propagated[LeafId(l)] = before;
  }
  chosen.propagated_bytes = bytes;
  chosen.propagated_seconds = seconds;
  *propagation = std::move(chosen);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
