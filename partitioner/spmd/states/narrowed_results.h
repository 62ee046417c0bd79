// SPDX-License-Identifier: Apache-2.0
// Results that are stored in larger shards than any op reads. The plan decides an op before those
// that read it, so a sum over devices may be reduced whole, as an annotation or propagation has it,
// where each device then cuts out its shard. Here the state in which a result is stored becomes the
// one that is read, so that the sum is reduce-scattered.
//
// Example: the gradient of weights that the model constrains to be replicated is constrained, too,
// by JAX; the optimizer reads shards of it.
#ifndef SHARDCALL_PARTITIONER_SPMD_STATES_NARROWED_RESULTS_H_
#define SHARDCALL_PARTITIONER_SPMD_STATES_NARROWED_RESULTS_H_

#include "absl/status/statusor.h"
#include "shardcall/partitioner/spmd/plan/plan.h"
#include "shardcall/sharding/cost_model.h"

namespace shardcall {
inline namespace internal {

// Changes the plan where that sends less. O(operands).
void NarrowResults(const Program& program, const CostModel& cost, Plan* plan);
// MakePlan, with narrowed results.
absl::StatusOr<Plan> MakeNarrowPlan(const Program& program, const PropagationResult& propagation,
                                    RuleTable& rules, const SpmdOptions& options,
                                    PlanMemo* memo = nullptr);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STATES_NARROWED_RESULTS_H_
