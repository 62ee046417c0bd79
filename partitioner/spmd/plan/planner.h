// SPDX-License-Identifier: Apache-2.0
// The walk behind MakePlan: plan.cc (driver), plan_structural.cc (control flow, annotations, manual
// regions), plan_rule.cc (ops with a rule, and those without one), plan_custom_call.cc (callbacks
// and checks of custom calls), plan_one_device.cc (ops of one device, infeed and outfeed).
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_PLANNER_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_PLANNER_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "shardcall/partitioner/spmd/plan/invariants.h"
#include "shardcall/partitioner/spmd/plan/missing_rules.h"
#include "shardcall/partitioner/spmd/plan/op_decider.h"
#include "shardcall/partitioner/spmd/plan/plan_table.h"
#include "shardcall/partitioner/spmd/plan/waiting_sums.h"

namespace shardcall {
inline namespace internal {

class Planner {
 public:
  Planner(const Program& program, const PropagationResult& propagation, RuleTable& rules,
          const SpmdOptions& options, PlanMemo* memo);
  absl::StatusOr<Plan> Run();

 private:
  // plan.cc
  absl::Status PlanComputation(CompId comp);
  void PlanInstruction(InstrId id);
  void SetEntryStates();

  // plan_structural.cc
  void PlanStructural(InstrId id);
  void PlanPassedStates(InstrId id, PlanKind kind, const States& operands);
  // The results are produced in these states, and resharded to those that are wanted.
  void PlanControlFlow(InstrId id, PlanKind kind, const States& operands, const States& produced);
  void AppendParameters(CompId comp, States* states) const;
  void PlanCall(InstrId id, CompId callee);
  void PlanBoundary(InstrId id, const ManualBoundary& boundary);
  void PlanManual(InstrId id);

  // plan_rule.cc
  Sources SourcesOfOperands(InstrId id) const;  // empty if none has one
  void PlanRule(InstrId id, const ShardingRule& rule);
  // The same of an op that does not add sums that wait.
  void PlanByRule(InstrId id, const ShardingRule& rule);
  void PlanReplicated(InstrId id, PlanKind kind = PlanKind::kRule);

  // plan_one_device.cc
  // Plans ops that one device runs, infeed and outfeed, and transfers, which are planned as a whole
  // at their end. False, without a plan, for all other ops.
  bool PlanOneDevice(InstrId id);
  void PlanTransferEnd(InstrId id, InstrId start);
  void PlanFeed(InstrId id);
  // E106 if a computation called by an op of one device has a collective or a manual region, since
  // the other devices do not run it.
  void CheckWhole(InstrId id);
  void CheckSideEffect(InstrId id);

  // plan_custom_call.cc
  // Plans a call that takes any shards. Sums over shards are added up before.
  void PlanOnShards(InstrId id);
  // The states of the operands that a partition callback is shown: as they are, but for factors
  // that the call's own rule needs whole.
  States SeenByCallback(InstrId id);
  // Plans a call with partition callbacks. False if the call has no rule.
  bool PlanCallbacks(InstrId id);
  void CheckUneven(InstrId id, const Decision& d);
  // W204, once per factor of a target.
  void WarnOfLackingResults(InstrId id, const Decision& d);

  const Program& program_;
  const Module& module_;
  const LeafTable& leaves_;
  const PropagationResult& propagation_;
  RuleTable& rules_;
  const SpmdOptions& options_;
  Context& context_;
  PlanTable table_;
  Plan& plan_;  // the table's
  OpDecider decider_;
  WaitingSums waiting_;
  const Invariants invariants_;
  MissingRules missing_;
  absl::flat_hash_set<std::string> warned_;  // targets and factors that W204 has named
  bool any_maximal_ = false;                 // some sharding names one device
  std::vector<std::string> errors_;          // E104, E106, E150
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_PLANNER_H_
