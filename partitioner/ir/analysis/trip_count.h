// SPDX-License-Identifier: Apache-2.0
// The trip count of a while loop, where its computations show it, and how often computations run.
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_TRIP_COUNT_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_TRIP_COUNT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The trip count of a counted loop (the counter starts from a constant, is incremented by a
// constant and compared with a constant), or -1. Looks through tuples; calls were inlined by
// import.
int64_t KnownTripCount(const Module& module, InstrId loop);
// How often `instr` runs each of its computations: as often as a loop is known to, else `otherwise`
// (CostModel::trip_count); all other ops once.
double RunsOfComputations(const Module& module, InstrId instr, double otherwise);
// The branches of a conditional, of which one runs.
enum class BranchRuns {
  kAll,       // each counts as run
  kExpected,  // each is as likely as the others
};
// As RunsOfComputations; each branch of a conditional by its chance.
double ExpectedRuns(const Module& module, InstrId instr, double otherwise);
// How often each computation runs in a run of the module. `order` is ComputationPostOrder(module).
std::vector<double> RunsByComputation(const Module& module, absl::Span<const CompId> order,
                                      double otherwise, BranchRuns branches = BranchRuns::kAll);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_TRIP_COUNT_H_
