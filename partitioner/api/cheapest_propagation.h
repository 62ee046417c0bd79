// SPDX-License-Identifier: Apache-2.0
// Of the propagations that differ in which of two factors takes an axis (conflict_order.h), the
// one whose plan takes the least time by the cost model, of those that send no more than the order
// of Shardy does (ConflictOrder::kWait). First one order for all conflicts, then the others for the
// ops of one rule at a time, those with the largest tensors first: each is kept if it is cheaper.
// Bounded by kMostChoices; none are tried where the orders have two results, and that of kWait is
// cheaper by more than a twentieth.
#ifndef SHARDCALL_PARTITIONER_API_CHEAPEST_PROPAGATION_H_
#define SHARDCALL_PARTITIONER_API_CHEAPEST_PROPAGATION_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "shardcall/partitioner/api/partition.h"

namespace shardcall {
inline namespace internal {

// Rules whose ops may have an order of their own, or at least are tried with one.
inline constexpr int kMostChoices = 8;

struct PlannedPropagation {
  PropagationResult shardings;
  std::optional<Plan> plan;  // null: it was not needed for the choice
};

struct CheapestResult {
  PlannedPropagation best;
  // What was propagated, if the states of values were chosen otherwise (spmd/states).
  std::optional<PlannedPropagation> propagated;
  std::vector<TriedOrder> tried;  // orders with different results; empty: all have the same
};

// Errors: those of Propagate. An order whose plan fails is not taken if another has a plan.
absl::StatusOr<CheapestResult> CheapestPropagation(const Program& program, RuleTable& rules,
                                                   const PartitionOptions& options);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_CHEAPEST_PROPAGATION_H_
