// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/cheapest_propagation.h"

#include <algorithm>
#include <utility>

#include "shardcall/partitioner/propagation/engine.h"
#include "shardcall/partitioner/propagation/even_edges.h"
#include "shardcall/partitioner/spmd/plan/plan_memo.h"
#include "shardcall/partitioner/spmd/states/cheaper_states.h"
#include "shardcall/partitioner/spmd/states/common_copies.h"
#include "shardcall/partitioner/spmd/states/narrowed_results.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr double kClearly = 1.05;

class Search {
 public:
  Search(const Program& program, RuleTable& rules, const PartitionOptions& options)
      : program_(program), rules_(rules), options_(options), engine_(program, rules) {}

  absl::Status Run() {
    SHARDCALL_ASSIGN_OR_RETURN(std::vector<PropagationResult> results,
                               engine_.RunInEachOrder(Options()));
    if (results.size() == 1) return LookAhead(std::move(results[0]));
    for (PropagationResult& result : results) SHARDCALL_RETURN_IF_ERROR(Try(std::move(result)));
    // None has a plan: that of the first says why.
    if (!plan_.has_value()) {
      SHARDCALL_ASSIGN_OR_RETURN(best_, engine_.Run(Options()));
      return absl::OkStatus();
    }
    SHARDCALL_RETURN_IF_ERROR(ChooseByRule());
    NarrowResults(program_, options_.spmd.cost, &*plan_);
    return ChooseStates();
  }

  CheapestResult TakeResult() {
    return {{std::move(best_), std::move(plan_)}, std::move(propagated_), std::move(tried_)};
  }

 private:
  PropagationOptions Options() const { return {options_.propagate, options_.spmd.cost}; }

  // Whether anything beside the order of conflicts is chosen by cost.
  bool MayChoose() {
    return LooksAhead(program_, options_.spmd) ||
           TriesCommonCopies(program_, rules_, options_.spmd);
  }

  // For a program without conflicts.
  absl::Status LookAhead(PropagationResult result) {
    best_ = std::move(result);
    if (!MayChoose()) return absl::OkStatus();
    if (options_.even_edges) EvenResults(program_, &best_);
    absl::StatusOr<Plan> made = MakeNarrowPlan(program_, best_, rules_, options_.spmd, &memo_);
    if (!made.ok()) return CheckStop();  // whoever plans it is told why
    plan_ = *std::move(made);
    return ChooseStates();
  }

  absl::Status ChooseStates() {
    if (MayChoose()) propagated_ = {best_, plan_};
    if (options_.propagate) {
      SHARDCALL_RETURN_IF_ERROR(
          ChooseCheaperStates(program_, rules_, options_.spmd, memo_, &best_, &*plan_));
      SHARDCALL_RETURN_IF_ERROR(ChooseStatesFromFirst());
    } else {
      SHARDCALL_RETURN_IF_ERROR(
          ChooseCommonCopies(program_, rules_, options_.spmd, memo_, &best_, &*plan_));
    }
    if (best_.propagated.empty() && best_.common_copies.empty()) propagated_.reset();
    return absl::OkStatus();
  }

  // What is near the first order may be cheaper than what is near the cheapest one.
  absl::Status ChooseStatesFromFirst() {
    if (!first_.has_value() || tried_.front().taken) return absl::OkStatus();
    Plan& plan = *first_->plan;
    NarrowResults(program_, options_.spmd.cost, &plan);
    SHARDCALL_RETURN_IF_ERROR(
        ChooseCheaperStates(program_, rules_, options_.spmd, memo_, &first_->shardings, &plan));
    if (plan.seconds >= (1 - kWorthwhileSaving) * plan_->seconds ||
        !BytesAreWorthIt({plan.bytes, plan.seconds}, {plan_->bytes, plan_->seconds})) {
      return absl::OkStatus();
    }
    best_ = std::move(first_->shardings);
    plan_ = std::move(plan);
    return absl::OkStatus();
  }

  // Plans the propagation, and keeps it if it is the cheapest so far.
  absl::Status Try(PropagationResult result) {
    if (options_.even_edges) EvenResults(program_, &result);  // the edges as they will be
    absl::StatusOr<Plan> made = MakePlan(program_, result, rules_, options_.spmd, &memo_);
    if (!made.ok()) return CheckStop();
    tried_.push_back({result.conflicts, made->bytes, made->seconds, result.choices});
    const bool small = program_.module.num_instructions() <= kMostInSmallProgram;
    if (tried_.size() == 1 && small && LooksAhead(program_, options_.spmd)) {
      first_ = {result, *made};
    }
    if (plan_.has_value() &&
        (made->bytes > tried_.front().bytes || made->seconds >= plan_->seconds)) {
      return absl::OkStatus();
    }
    for (TriedOrder& t : tried_) t.taken = &t == &tried_.back();
    plan_ = *std::move(made);
    best_ = std::move(result);
    return absl::OkStatus();
  }

  // Whether the first order, which leaves conflicts until nothing else is left, is cheaper by
  // kClearly than the only other result there is. Of 125 training steps, attentions and products
  // with two results, no rule was better off with the other order then; where all three orders
  // differ, as in graph networks, many are.
  bool FirstIsClearlyCheapest() const {
    return tried_.size() == 2 && tried_[0].order == ConflictOrder::kWait && tried_[0].taken &&
           tried_[1].seconds > kClearly * tried_[0].seconds;
  }

  absl::Status ChooseByRule() {
    if (FirstIsClearlyCheapest()) return absl::OkStatus();
    std::vector<Conflict> met = best_.met;
    std::stable_sort(met.begin(), met.end(),
                     [](const Conflict& a, const Conflict& b) { return a.bytes > b.bytes; });
    if (met.size() == 1) return absl::OkStatus();  // the orders were for it alone
    if (met.size() > kMostChoices) met.resize(kMostChoices);
    for (const Conflict& conflict : met) {
      const ConflictOrder now = best_.conflicts;
      for (ConflictOrder order : kConflictOrders) {
        if (order == now) continue;
        PropagationOptions options = Options();
        options.conflicts = best_.conflicts;
        options.choices = best_.choices;
        std::erase_if(options.choices, [&](const auto& c) { return c.op == conflict.op; });
        options.choices.push_back({conflict.op, order});
        SHARDCALL_ASSIGN_OR_RETURN(PropagationResult result, engine_.Run(options));
        if (result.sharding == best_.sharding && result.outputs == best_.outputs) continue;
        SHARDCALL_RETURN_IF_ERROR(Try(std::move(result)));
      }
    }
    return absl::OkStatus();
  }

  const Program& program_;
  RuleTable& rules_;
  const PartitionOptions& options_;
  PropagationEngine engine_;
  PlanMemo memo_;
  PropagationResult best_;
  std::optional<Plan> plan_;
  std::optional<PlannedPropagation> propagated_;  // before other states were chosen
  std::optional<PlannedPropagation> first_;       // of the first order, in small programs
  std::vector<TriedOrder> tried_;
};

}  // namespace

absl::StatusOr<CheapestResult> CheapestPropagation(const Program& program, RuleTable& rules,
                                                   const PartitionOptions& options) {
  Search search(program, rules, options);
  SHARDCALL_RETURN_IF_ERROR(search.Run());
  return search.TakeResult();
}

}  // namespace internal
}  // namespace shardcall
