// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/cheapest_propagation.h"

#include <utility>

#include "shardcall/partitioner/propagation/even_edges.h"
#include "shardcall/partitioner/spmd/plan/plan_memo.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall::inline internal {

absl::StatusOr<PropagationResult> CheapestPropagation(const Program& program, RuleTable& rules,
                                                      const PartitionOptions& options,
                                                      std::vector<TriedOrder>* tried,
                                                      std::optional<Plan>* plan) {
  SHARDCALL_ASSIGN_OR_RETURN(
      std::vector<PropagationResult> results,
      PropagateInEachOrder(program, rules, {options.propagate, options.spmd.cost}));
  tried->clear();
  plan->reset();
  if (results.size() == 1) return std::move(results[0]);
  size_t best = 0;
  PlanMemo memo;
  for (size_t k = 0; k < results.size(); ++k) {
    if (options.even_edges) EvenResults(program, &results[k]);  // the edges as they will be
    absl::StatusOr<Plan> made = MakePlan(program, results[k], rules, options.spmd, &memo);
    if (!made.ok()) {
      SHARDCALL_RETURN_IF_ERROR(CheckStop());
      continue;
    }
    tried->push_back({results[k].conflicts, made->bytes, made->seconds});
    if (plan->has_value() &&
        (made->bytes > tried->front().bytes || made->seconds >= (*plan)->seconds)) {
      continue;
    }
    *plan = *std::move(made);
    best = k;
  }
  return std::move(results[best]);
}

}  // namespace shardcall::inline internal
