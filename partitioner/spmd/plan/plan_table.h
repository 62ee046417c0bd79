// SPDX-License-Identifier: Apache-2.0
// The plan while it is made: the states in which values are wanted, stored and available. All
// decisions are recorded here.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_TABLE_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_TABLE_H_

#include <vector>

#include "shardcall/partitioner/spmd/plan/copies.h"
#include "shardcall/partitioner/spmd/plan/plan.h"
#include "shardcall/partitioner/spmd/plan/program_facts.h"
#include "shardcall/sharding/cost_model.h"

namespace shardcall {
inline namespace internal {

using States = absl::InlinedVector<const Sharding*, 12>;
using Shapes = absl::InlinedVector<const Shape*, 12>;
using CopyList = absl::InlinedVector<const Copies*, 12>;

class PlanTable {
 public:
  PlanTable(const Program& program, const PropagationResult& propagation,
            const SpmdOptions& options, InternTable<Copies>* copy_lists, ProgramFacts* facts);

  Plan& plan() { return plan_; }
  Context& context() const { return context_; }
  // Copies made in one computation are not available in the next. What is planned from here on
  // runs `runs` times.
  void StartComputation(double runs) {
    copies_.Clear();
    runs_ = runs;
  }
  // Takes back what was charged for the reshards of annotations that nobody takes.
  void EndComputation(InstrId root);

  // The state that propagation wants for a flat leaf of a result; null if the leaf is not an array.
  const Sharding* Wanted(InstrId id, int flat) const;
  // As Wanted; but for a value whose only use is an annotation that wants it partial, that partial
  // state.
  const Sharding* WantedOfOp(InstrId id, int flat) const;
  // Whether propagation wants a value partial: a parameter, or one that an annotation makes so.
  bool WantsPartial() const;
  // Bytes of one device's memory that the program needs in the states that propagation wants, as
  // far as can be said before it is planned. Linear in the program, and found once.
  int64_t WantedMemory() const;
  // What of the room beyond it a plan may take for loops.
  int64_t RoomForLoops() const { return shardcall::RoomForLoops(WantedMemory(), max_memory_); }
  // Whether that is `bytes` at least. Cheaper where the room beyond parameters and results is.
  bool HasRoomForLoops(int64_t bytes) const;
  // The state in which it is stored.
  const Sharding* State(InstrId id, int flat) const {
    return plan_.state[program_.leaves.canonical(id, flat).value];
  }
  const Sharding* Replicated(InstrId id, const Shape* shape) const;
  // The states in which the operands are stored. `copies` gets their further available states, and
  // stays empty if no operand has any.
  States OperandStates(InstrId id, CopyList* copies = nullptr) const;
  Shapes OperandShapes(InstrId id) const;
  // Whether devices can generate any part of it (ir/analysis/generated_values.h).
  bool IsGenerated(InstrId id) const { return facts_.generated[id.value]; }
  // An earlier op that makes the same value; invalid: none.
  InstrId equal(InstrId id) const { return facts_.equal[id.value]; }
  // Takes the value of `id` from that of the equal op, if nothing is sent for that. It has one.
  bool TakeEqual(InstrId id);
  // FindAccumulators of the program. `products` is the same for all plans.
  const Accumulators& AccumulatorsOf(PassedProducts products);
  // Where the op works, as far as its attributes do not say it: where a dynamic-update-slice places
  // its update, by dimension, clamped, if that is constant. Which rows of a sort are read, begin
  // and end, or twice 0 if all are; and its PlacesOperand. Empty for all other ops.
  absl::InlinedVector<int64_t, 8> PlacesOf(InstrId id) const;
  // How many operands `id` is, or other ops that make the same value may read it.
  uint32_t num_uses(InstrId id) const { return facts_.num_uses[id.value]; }
  // The instruction that reads `id` last; invalid if none does.
  InstrId last_user(InstrId id) const { return facts_.last_user[id.value]; }

  // What one device sends to reshard a value; nothing for null or equal states.
  Traffic ReshardTraffic(const Shape* shape, const Sharding* from, const Copies* copies,
                         const Sharding* to);

  // A copy that lives as long as the Context.
  const Decision* Keep(const Decision& d);
  const ShardingRule* KeepRule(ShardingRule rule);
  // Adds to the cost of the plan: of the computation that is planned, and of `runs` executions of
  // a reshard.
  void Charge(double bytes, double seconds) { ChargeRuns(runs_, bytes, seconds); }
  void ChargeReshard(double runs, const Shape* shape, const Sharding* from, const Copies* copies,
                     const Sharding* to);
  // Records the decision, the states in which the results are stored, and the copies of operands
  // and results that it leaves, and charges what reshards them.
  void Finish(InstrId id, PlanKind kind, const Decision* decision);
  // The two halves of Finish.
  void SetDecision(InstrId id, PlanKind kind, const Decision* decision);
  void NoteCopies(InstrId id, PlanKind kind, const Decision& decision);
  // Records that `id` takes its operands in these states (null: as they are stored).
  void NoteOperandCopies(InstrId id, Decision::States taken);

 private:
  void ChargeRuns(double runs, double bytes, double seconds) {
    plan_.bytes += runs * bytes;
    plan_.seconds += runs * seconds;
  }
  // Charges the reshards of operands and results, and records the copies of operands.
  void ChargeReshards(InstrId id, PlanKind kind, const Decision& d);
  void NoteResultCopies(InstrId id, PlanKind kind, const Decision& d);
  // Lets result k of `id`, which is stored as `state`, have what there is of leaf k of `from`, the
  // same value.
  void TakeCopies(InstrId id, InstrId from, int k, const Sharding* state);
  // Of result k of a manual boundary: what the devices have of its operand on the other side.
  void NoteCopiesAcross(InstrId id, size_t k, const Decision& d);
  // Whether later ops can use what its operands are resharded to: a callback chooses their
  // shardings only when it runs, and a barrier's results are new values.
  static bool KeepsCopies(PlanKind kind) {
    return kind != PlanKind::kCallbacks && kind != PlanKind::kBarrier;
  }
  void NoteOperandCopy(InstrId user, InstrId operand, int flat, const Sharding* taken);
  // Records from which copy an op takes its operand.
  void NoteTaken(InstrId operand, int flat, const Sharding* taken);
  // The states in which a value is available to an op that wants another than the stored one: those
  // of its copies, and what its common copy will be made of.
  const Copies* AvailableCopies(InstrId operand, int flat) const;
  // Makes the common copy of an operand that `user` takes in another state than the stored one.
  void MakeCommonCopy(InstrId user, InstrId operand, int flat, const Sharding* taken);
  // Of a leaf of a result, as propagation wants it, and of all its leaves.
  int64_t WantedBytes(InstrId id, int leaf) const;
  int64_t WantedBytes(InstrId id) const;
  int64_t EdgeBytes() const;  // of parameters and results

  const CostModel& cost_;
  double runs_ = 1;
  const Program& program_;
  const Module& module_;
  const LeafTable& leaves_;
  const PropagationResult& propagation_;
  const int64_t max_memory_;
  mutable int64_t memory_ = -1, edges_ = -1;  // WantedMemory; that of parameters and results
  Context& context_;
  Plan plan_;
  mutable CopyTable copies_;  // lists of copies are interned when they are asked for
  UntakenReshards untaken_;
  ProgramFacts& facts_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_TABLE_H_
