// SPDX-License-Identifier: Apache-2.0
// The walk behind MakePlan, split over plan.cc (driver), plan_structural.cc
// (control flow, annotations, manual regions), plan_rule.cc (ops with a rule:
// candidates and costs), plan_custom_call.cc (calls without one) and
// plan_gathers.cc (what is gathered unasked), plan_one_device.cc (what one device does,
// feeds).
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_PLANNER_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_PLANNER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "shardcall/partitioner/spmd/plan/copies.h"
#include "shardcall/partitioner/spmd/plan/plan.h"
#include "shardcall/sharding/base/intern_table.h"
#include "shardcall/sharding/rule/factor_assignment.h"

namespace shardcall {

using States = absl::InlinedVector<const Sharding*, 12>;
using Shapes = absl::InlinedVector<const Shape*, 12>;
using CopyList = absl::InlinedVector<const Copies*, 12>;

class Planner {
 public:
  Planner(const Program& program, const PropagationResult& propagation, RuleTable& rules,
          const SpmdOptions& options);
  absl::StatusOr<Plan> Run();

 private:
  // What was decided for ops alike; lives in the Context, spans too.
  struct MemoEntry {
    const ShardingRule* rule;
    int region;
    Opcode opcode;
    absl::Span<const Sharding* const> operands, wanted;
    absl::Span<const Copies* const> copies;  // of operands; empty: none at all
    const Decision* decision;
    bool moves;                  // an operand, or a result, into another state
    absl::string_view fallback;  // empty: none
    absl::Span<const Gather> gathers;
  };
  // A decision in the making, on storage of its own.
  struct Draft {
    Decision d;
    States operands, produced;
    absl::InlinedVector<absl::Span<const AxisRef>, 8> axes;
  };

  // plan.cc
  void PlanComputation(CompId comp);
  void PlanInstruction(InstrId id);
  void SetTripCounts(const std::vector<CompId>& order);
  const Sharding* Wanted(InstrId id, int flat) const;
  // As Wanted, but of a value whose only use is an annotation that wants it
  // partial, that.
  const Sharding* WantedOfOp(InstrId id, int flat) const;
  const Sharding* State(InstrId id, int flat) const {
    return plan_.state[leaves_.canonical(id, flat).value];
  }
  void SetState(InstrId id, int flat, const Sharding* s) {
    plan_.state[leaves_.canonical(id, flat).value] = s;
  }
  const Sharding* Replicated(InstrId id, const Shape* shape) const;
  // What the operands are stored as. `copies` gets the states in which they are at
  // hand beside that, and stays empty where there are none at all.
  States OperandStates(InstrId id, CopyList* copies = nullptr) const;
  Shapes OperandShapes(InstrId id) const;
  // A copy of `d` that lives as long as the Context.
  const Decision* Keep(const Decision& d);
  // Notes the decision, and the states that it brings its operands and results into.
  void Finish(InstrId id, PlanKind kind, const Decision* decision);
  void SetDecision(InstrId id, PlanKind kind, const Decision* decision);  // without the states
  void NoteCopies(InstrId id, PlanKind kind, const Decision& decision);
  double ReshardBytes(const Shape* shape, const Sharding* from, const Copies* copies,
                      const Sharding* to, int* collectives);

  // plan_gathers.cc
  // What an op of that rule and decision gathers, or computes whole, unasked.
  void FindGathers(InstrId id, const IndexSet& allowed, const Shapes& shapes, MemoEntry* entry);
  // Operands that are taken in larger parts than they are stored in: `taken`, null for those
  // that are not. By a loop, a branch or a call (kState), or for want of more (kHandler).
  void NoteOperandGathers(InstrId id, Gather::Kind kind, Decision::States taken);
  // Callbacks know the program's mesh alone: what is sharded in another order of its devices
  // they see, and are given, whole.
  void NoteOtherOrders(InstrId id);
  // Results that are computed whole for want of any rule.
  void NoteWholeResults(InstrId id, Decision::States produced, Decision::States wanted);

  // plan_structural.cc
  void PlanStructural(InstrId id);
  void PlanBoundary(InstrId id, const ManualBoundary& boundary);
  void PlanManual(InstrId id);
  void PlanPassedStates(InstrId id, PlanKind kind, const States& operands);

  // plan_rule.cc
  void PlanRule(InstrId id, const ShardingRule& rule);
  void Decide(InstrId id, MemoEntry* entry);
  IndexSet AllowedFactors(const Instruction& instr, const ShardingRule& rule) const;
  // False as soon as the decision is known to take `limit` seconds or more; then
  // what stands in `out` is not whole.
  bool Evaluate(InstrId id, const MemoEntry& entry, const Strategy& strategy,
                const FactorAssignment& assignment, const Shapes& shapes, double limit, Draft* out);
  double LocalSeconds(const Instruction& instr, const Shapes& operand_shapes,
                      const Decision& d) const;

  // plan_one_device.cc
  // False if the op is planned as others are. Ops that one device runs, feeds, and
  // transfers, which their end does as a whole.
  bool PlanOneDevice(InstrId id);
  void PlanFeed(InstrId id);
  // What an op of one device calls runs whole: there is nobody to talk to.
  void CheckWhole(InstrId id);
  void CheckSideEffect(InstrId id);

  // plan_custom_call.cc
  // Whether it is E101, which says all that is missing.
  bool PlanMissing(InstrId id);
  // Whether a call of an E101 makes an operand, or what it is made of.
  bool BehindMissing(InstrId id) const;
  // The sharding of what a loop or a branch takes in as a value that it holds
  // replicated, or null. A loop or branch with annotations of its own says so.
  const Sharding* ShardedOutside(InstrId id, int flat);
  bool PlanCallbacks(InstrId id);  // as PlanMissing
  void PlanReplicated(InstrId id, PlanKind kind = PlanKind::kRule);
  void CheckUneven(InstrId id, const Decision& d);
  // W204, once for a target's factor.
  void WarnOfLackingResults(InstrId id, const Decision& d);

  const Program& program_;
  const Module& module_;
  const LeafTable& leaves_;
  const PropagationResult& propagation_;
  RuleTable& rules_;
  const SpmdOptions& options_;
  Context& context_;
  Plan plan_;
  CopyTable copies_;
  InternTable<MemoEntry> memo_;
  absl::flat_hash_set<std::string> warned_;       // targets with their factors
  bool any_maximal_ = false;                      // a sharding names one device
  std::vector<uint32_t> num_uses_;                // by instruction
  std::vector<InstrId> last_user_;                // by instruction
  std::vector<std::string> errors_;               // E101, E150
  absl::flat_hash_map<CompId, InstrId> callers_;  // made when first asked for
  static constexpr int kMostNamedCalls = 8;       // of a target of E101; others are counted
  struct MissingTarget {
    int calls = 0;
    size_t last_error = 0;  // in errors_, of a call that is named
  };
  std::map<std::string, MissingTarget> missing_;  // of E101
  std::vector<bool> behind_missing_;              // by instruction; empty until an E101
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_PLANNER_H_
