// SPDX-License-Identifier: Apache-2.0
// Copies that several ops may start from. The plan decides op by op, and an op does not know what
// later ones want: where it may as well reshard its result as its operand, it cannot tell which of
// the two another op needs besides. Here are the copies that are worth planning for; see
// PropagationResult::common_copies.
#ifndef SHARDCALL_PARTITIONER_SPMD_STATES_COMMON_COPIES_H_
#define SHARDCALL_PARTITIONER_SPMD_STATES_COMMON_COPIES_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/spmd/plan/plan.h"
#include "shardcall/partitioner/spmd/plan/plan_memo.h"

namespace shardcall {
inline namespace internal {

// Of each value that ops of the plan reshard, the copy that leaves most of it on a device. `order`
// has the instructions that are partitioned, and says in which order copies are returned.
using CommonCopy = std::pair<LeafId, const Sharding*>;
std::vector<CommonCopy> CopiesMadeBy(const Program& program, absl::Span<const InstrId> order,
                                     const Plan& plan);
// Of each value that is sharded in the plan and read by several ops, all of it.
std::vector<CommonCopy> CopiesOfAll(const Program& program, absl::Span<const InstrId> order,
                                    const Plan& plan);

// Whether copies are looked for in such a program: by its ops that have rules, of which it has as
// many where its shardings are stated.
bool TriesCommonCopies(const Program& program, RuleTable& rules, const SpmdOptions& options);

// Lets ops know of the copies that others make in `plan`, which was made of `propagation` without
// common copies; in a program of few ops, of any value that several read. Both are replaced if that
// takes less time. What is chosen depends on the states of the values alone, so it is found again
// for a program that states them.
absl::Status ChooseCommonCopies(const Program& program, RuleTable& rules,
                                const SpmdOptions& options, PlanMemo& memo,
                                PropagationResult* propagation, Plan* plan);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STATES_COMMON_COPIES_H_
