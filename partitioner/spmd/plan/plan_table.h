// SPDX-License-Identifier: Apache-2.0
// The plan in the making: the states that values are wanted in, stored in and at hand in, and
// the one place that writes down a decision.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_TABLE_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_TABLE_H_

#include <vector>

#include "shardcall/partitioner/spmd/plan/copies.h"
#include "shardcall/partitioner/spmd/plan/plan.h"

namespace shardcall::inline internal {

using States = absl::InlinedVector<const Sharding*, 12>;
using Shapes = absl::InlinedVector<const Shape*, 12>;
using CopyList = absl::InlinedVector<const Copies*, 12>;

class PlanTable {
 public:
  PlanTable(const Program& program, const PropagationResult& propagation);

  Plan& plan() { return plan_; }
  Context& context() const { return context_; }
  // Copies that values of one computation leave are not at hand in the next.
  void StartComputation() { copies_.Clear(); }

  // What propagation wants a flat leaf of a result in; null for what is no array.
  const Sharding* Wanted(InstrId id, int flat) const;
  // As Wanted, but of a value whose only use is an annotation that wants it
  // partial, that.
  const Sharding* WantedOfOp(InstrId id, int flat) const;
  // What it is stored as.
  const Sharding* State(InstrId id, int flat) const {
    return plan_.state[program_.leaves.canonical(id, flat).value];
  }
  const Sharding* Replicated(InstrId id, const Shape* shape) const;
  // What the operands are stored as. `copies` gets the states in which they are at
  // hand beside that, and stays empty where there are none at all.
  States OperandStates(InstrId id, CopyList* copies = nullptr) const;
  Shapes OperandShapes(InstrId id) const;
  // The instruction that reads `id` last; invalid if none does.
  InstrId last_user(InstrId id) const { return last_user_[id.value]; }

  // Bytes that one device sends to bring a value from one state into another; null states and
  // equal ones send nothing. Adds the collectives that it takes to `collectives`.
  double ReshardBytes(const Shape* shape, const Sharding* from, const Copies* copies,
                      const Sharding* to, int* collectives);

  // A copy of `d` that lives as long as the Context.
  const Decision* Keep(const Decision& d);
  // Notes the decision, the states that results are stored in, and those that it leaves copies
  // of operands and results in.
  void Finish(InstrId id, PlanKind kind, const Decision* decision);
  // The two halves of Finish.
  void SetDecision(InstrId id, PlanKind kind, const Decision* decision);
  void NoteCopies(InstrId id, PlanKind kind, const Decision& decision);
  // The operands of `id` are fetched in these states (null: as they are).
  void NoteOperandCopies(InstrId id, Decision::States taken);

 private:
  const Program& program_;
  const Module& module_;
  const LeafTable& leaves_;
  const PropagationResult& propagation_;
  Context& context_;
  Plan plan_;
  CopyTable copies_;
  std::vector<uint32_t> num_uses_;  // by instruction
  std::vector<InstrId> last_user_;  // by instruction
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_TABLE_H_
