// SPDX-License-Identifier: Apache-2.0
// Partial sums that wait. A product whose contraction is sharded leaves a sum over devices, which
// is reduced at once, as the op's users want it. Where its only user adds it to another such sum,
// maybe after both were transposed or negated, one reduction of the total is enough. Where an op
// that is linear in it, such as a slice or a sum over a dimension, makes less of it, that is
// reduced. The walk decides each op as if it reduced at once, and this table keeps what it would
// save to wait; the op that adds, or makes less, takes these decisions back where that sends less.
//
// Example: x·w + y·v over a sharded contraction is one all-reduce, not two. So is the gradient of
// an input that three projections share. Of the mean of x·w each device computes its part.
//
// A value that is stored as such a sum (a parameter, or one that an annotation leaves unreduced) is
// passed on and added likewise.
//
// An accumulator of a loop (accumulators.h) waits for the loop's end: what an iteration adds to it
// is not reduced. Gradients of micro-batches are reduced once, not once an iteration. The sum may
// be held in larger shards until then, as long as that takes little memory. Where a loop stacks
// sums, the stack is one, and waits after the loop: gradients of layers, stacked by a loop over the
// layers, are reduced once for all micro-batches.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_WAITING_SUMS_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_WAITING_SUMS_H_

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/analysis/passed_sums.h"
#include "shardcall/partitioner/spmd/plan/accumulators.h"
#include "shardcall/partitioner/spmd/plan/candidate.h"
#include "shardcall/partitioner/spmd/plan/options.h"
#include "shardcall/partitioner/spmd/plan/plan_table.h"
#include "shardcall/sharding/cost_model.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall {
inline namespace internal {

class WaitingSums {
 public:
  WaitingSums(const Program& program, const SpmdOptions& options, PlanTable& table);

  // A root is read in the state that its computation gives, and never waits.
  void StartComputation(InstrId root) {
    root_ = root;
    waiting_.clear();
  }
  // Plans an op that adds sums which wait, if that sends less than to reduce each of them. False,
  // without a change of the plan, for all other ops.
  bool PlanSum(InstrId id, const ShardingRule& rule);
  // What an op, which is to be planned, may do for an accumulator that its result is added to, or
  // for the ops that make less of its result.
  AccumulatedResult AccumulatedFrom(InstrId id);
  // Lets an op that adds to a sum that waits, or makes less of it, reduce its result in place of
  // that sum, if that takes less time. The op is planned.
  void ReduceLater(InstrId id, const ShardingRule& rule);
  // Remembers what the op, which is planned, would save if its result waited.
  void Note(InstrId id, const ShardingRule& rule);
  // The same of a get-tuple-element that reads a stack of sums after its loop.
  void NoteStack(InstrId id);
  // The states in which a loop, whose computations are planned, carries its leaves: those of
  // `states`, but for accumulators that wait.
  void SetCarried(InstrId loop, States* states);

 private:
  struct Waiting {
    const Decision* later;  // for the op, if its result waits
    InstrId before;         // whose sum it passes on, and that waits, too; invalid if it makes one
    double seconds;         // saved, by this op and those before it
    // Nothing is added up: an element is on one device, and the others have -0 there, as where
    // rows are read that one of them holds. -0 adds nothing, but a product of it may.
    bool placed = false;
  };
  // Of ops that add up elements.
  static constexpr uint32_t kMakesSums = kTakesFlops | kCombinesElements;
  struct Cost {
    double bytes, seconds;
  };
  // A stack that may wait: the ops of its loop's body that make it, with their decisions then.
  struct WaitingStack {
    std::vector<std::pair<InstrId, const Decision*>> ops;
    const Sharding* state;
    double seconds;  // saved in all iterations
    int64_t more_bytes;
    bool placed;  // as those that are stacked
  };
  // What an op's result is accumulated in: by the op that adds. `parts`: such results that the
  // accumulator holds, by stacks between.
  struct MadeFor {
    InstrId sum;
    double parts = 1;
  };
  // Of a reshard of the result.
  Cost ReshardCost(InstrId id, const Sharding* from, const Sharding* to);
  // Whether the result has one user, which may pass the sum on, stack it or add it.
  bool MayWait(InstrId id) const;
  // The state of a value that is stored as a sum over devices: a parameter, or one that an
  // annotation leaves unreduced. Null for all others.
  const Sharding* StoredSum(InstrId value) const;
  // Plans an op that passes on a sum that is stored, if its result is wanted as the same sum.
  bool PlanPassed(InstrId id, const ShardingRule& rule);
  double Bits(InstrId id) const;  // of an array
  // If the result is a sum of which the next ops, which pass it on, make less: the smallest that
  // they make, as a share of the result. 1: they do not, or cannot wait in every state of it.
  double ShareOfLess(InstrId id) const;
  bool Passes(InstrId id, int operand, bool placed = false) const;
  // The number of an operand that occurs once.
  int OperandNumber(InstrId id, InstrId operand) const;
  // The first operand that is a sum, waiting or stored, which the op passes on (passed_sums.h); -1:
  // none.
  int PassedOn(InstrId id) const;
  // The decision of an op that runs on partial operands in state `from`, one of them or all
  // (operand -1), or on both arrays of an op that replaces a part of one by the other; the result
  // is as they are. Null if it does not run on these shards.
  const Decision* OnPartial(InstrId id, const ShardingRule& rule, int operand, const Sharding* from,
                            const Sharding* final);
  // What the steps of an accumulator add to it.
  std::vector<InstrId> AddendsOf(const Accumulator& accumulator) const;
  // Plans a sum with an accumulator, if it may wait.
  bool PlanAccumulated(InstrId id, const ShardingRule& rule, const Accumulator& accumulator);
  // Remembers what an op that stacks a sum would save if the stack waited.
  void NoteStacked(InstrId id, const ShardingRule& rule);
  // Lets a stack, which is read by `result`, be a sum from the loop on.
  void WaitStacked(InstrId result, const WaitingStack& stack);
  double RunsOf(InstrId loop) const;
  // Lets the parameter of a loop's computation have that state of a leaf.
  void ReadIn(CompId comp, int leaf, const Sharding* state);
  // Notes of which ops the results are accumulated in this accumulator, before they are planned.
  void FindMakers(InstrId addend, InstrId sum);
  // Bytes that are left on each device for accumulators in larger shards.
  int64_t Room();
  // Whether the accumulator may hold `bytes` more than if it did not wait. They are taken then.
  bool TakeRoom(InstrId sum, int64_t bytes);
  // Takes back the decision of an op whose result waits, and of those before it.
  void Wait(InstrId id);
  // Decides the op, in place of what was decided for it, if anything was.
  void Set(InstrId id, const Decision* decision);
  // Charges what changes so, of an op that runs `runs` times for each run of the computation that
  // is planned.
  void ChargeChange(InstrId id, const Decision* decision, double runs);

  const Program& program_;
  const Module& module_;
  const CostModel& cost_;
  const PassedProducts products_;  // by which sums are passed on
  PlanTable& table_;
  InstrId root_;
  absl::flat_hash_map<uint32_t, Waiting> waiting_;  // by instruction
  const Accumulators& accumulators_;
  const bool stores_sums_;  // whether the program may have values that are stored so
  // The accumulator that an op's result is added to, maybe after other ops passed it on.
  absl::flat_hash_map<InstrId, MadeFor> made_for_;
  absl::flat_hash_map<InstrId, int64_t> taken_;        // by accumulator: bytes of the room
  int64_t room_ = -1;                                  // less what is taken; -1: not known yet
  absl::flat_hash_map<InstrId, WaitingStack> stacks_;  // by the op that reads it after the loop
  // Accumulators that wait, by loop: leaves and their states.
  absl::flat_hash_map<InstrId, std::vector<std::pair<int, const Sharding*>>> carried_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_WAITING_SUMS_H_
