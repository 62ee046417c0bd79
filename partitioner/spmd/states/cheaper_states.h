// SPDX-License-Identifier: Apache-2.0
// Looks ahead. Propagation gives each value the sharding of its neighbours, and the plan decides op
// by op. Here the states of the values that nothing annotates are chosen together, for the least
// time of the whole program by the cost model: the cost is a sum of terms of few values each
// (state_graph.h), which is minimized over a short list of states for each value (state_offers.h,
// min_sum.h), and once more over what is near the states that are found. Then an axis moves to
// another dimension of the values that are dearest to send, together with all that follows from
// that. The plan has the last word: what it finds no cheaper is not taken, nor what needs more
// memory than there is room for.
//
// Example: the sum x w over a sharded contraction is added to a sharded y and multiplied by a
// sharded v. Propagation leaves the sum whole, as no operand has its axes to give; sharded as y it
// is reduce-scattered, with half the bytes of an all-reduce, and what follows works on shards.
#ifndef SHARDCALL_PARTITIONER_SPMD_STATES_CHEAPER_STATES_H_
#define SHARDCALL_PARTITIONER_SPMD_STATES_CHEAPER_STATES_H_

#include "absl/status/statusor.h"
#include "shardcall/partitioner/spmd/plan/plan.h"
#include "shardcall/partitioner/spmd/plan/plan_memo.h"
#include "shardcall/partitioner/spmd/plan/state_search.h"

namespace shardcall {
inline namespace internal {

// By how much of its time a plan has to be faster than the one it takes the place of, and what it
// may take of that where it sends more bytes.
inline constexpr double kWorthwhileSaving = 0.005, kTimeForBytes = 0.67;

// What a device sends, and the time by the cost model.
struct ProgramCost {
  double bytes = 0, seconds = 0;
};
// Whether more bytes than those of what was propagated, if these are more, save time that counts: a
// third of it where they are a few times as many, or the first ones, else more than half.
bool BytesAreWorthIt(const ProgramCost& chosen, const ProgramCost& propagated);

// Replaces the shardings of values in `propagation`, and its plan, by cheaper ones if there are
// any, and notes in PropagationResult::propagated what these were. Parameters, results and
// annotations keep theirs.
absl::Status ChooseCheaperStates(const Program& program, RuleTable& rules,
                                 const SpmdOptions& options, PlanMemo& memo,
                                 PropagationResult* propagation, Plan* plan);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STATES_CHEAPER_STATES_H_
