// SPDX-License-Identifier: Apache-2.0
// Values that a loop does not change. Where an op of the body needs one in another state, the
// reshard runs once, before the loop (pass/loop_invariants.cc), and is compared with what others
// cost in all iterations. A weight that every step of a recurrence uses is such a value.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_INVARIANTS_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_INVARIANTS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/spmd/plan/plan_table.h"

namespace shardcall {
inline namespace internal {

class Invariants {
 public:
  // By operand of an op: of the executions of the op those in which its reshard runs.
  using Shares = absl::InlinedVector<double, 4>;

  // Those of the program that are sharded, as long as there is room for them as a whole: a fifth
  // of the memory that a device needs. `trip_count`: of loops whose trip count is unknown.
  Invariants(const Program& program, const PlanTable& table, double trip_count);

  // Empty if all reshards run as often as the op.
  Shares OfOperands(InstrId op) const;
  // The same of ops all of whose operands are such values, so that their collectives run before the
  // loop. Those of a computation, in the order of the program.
  using OpShares = absl::Span<const std::pair<InstrId, double>>;
  OpShares OpsOf(CompId comp) const;
  // What they take as a whole.
  int64_t bytes() const { return bytes_; }

 private:
  void AddLoop(const PlanTable& table, InstrId loop, double share);
  // Whether `leaf` is one in that computation, or follows from such alone.
  bool Has(CompId comp, LeafId leaf) const;

  const Program& program_;
  struct Share {
    CompId body;  // it is invariant there; invalid: nowhere
    double share = 1;
  };
  std::vector<Share> shares_;  // by canonical leaf; empty: no leaf is invariant
  // By canonical leaf: the body that does not change it, if there is room for it or not.
  std::vector<CompId> unchanged_;
  absl::flat_hash_map<CompId, std::vector<std::pair<InstrId, double>>> ops_;
  int64_t bytes_ = 0;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_INVARIANTS_H_
