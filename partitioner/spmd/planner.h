// SPDX-License-Identifier: Apache-2.0
// The walk behind MakePlan, split over plan.cc (driver), plan_structural.cc
// (control flow, annotations, manual regions), plan_rule.cc (ops with a rule:
// candidates and costs) and plan_custom_call.cc (calls without one).
#ifndef SHARDCALL_PARTITIONER_SPMD_PLANNER_H_
#define SHARDCALL_PARTITIONER_SPMD_PLANNER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "partitioner/spmd/factor_assignment.h"
#include "partitioner/spmd/plan.h"

namespace shardcall {

using States = absl::InlinedVector<const Sharding*, 6>;

class Planner {
 public:
  Planner(const Program& program, const PropagationResult& propagation, RuleTable& rules,
          const SpmdOptions& options);
  absl::StatusOr<Plan> Run();

 private:
  struct MemoKey {
    const ShardingRule* rule;
    int region;
    Opcode opcode;
    States states;  // operands, then wanted results
    friend bool operator==(const MemoKey&, const MemoKey&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const MemoKey& k) {
      return H::combine(std::move(h), k.rule, k.region, static_cast<int>(k.opcode), k.states);
    }
  };
  struct MemoEntry {
    const Decision* decision;
    std::string fallback;  // empty: none
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
  States OperandStates(InstrId id) const;
  std::vector<const Shape*> OperandShapes(InstrId id) const;
  Decision* NewDecision();
  void Finish(InstrId id, PlanKind kind, const Decision* decision);
  double ReshardBytes(const Shape* shape, const Sharding* from, const Sharding* to,
                      int* collectives) const;

  // plan_structural.cc
  void PlanStructural(InstrId id);
  void PlanBoundary(InstrId id, const ManualBoundary& boundary);
  void PlanManual(InstrId id);
  void PlanPassedStates(InstrId id, PlanKind kind, const States& operands);

  // plan_rule.cc
  void PlanRule(InstrId id, const ShardingRule& rule);
  MemoEntry Decide(InstrId id, const ShardingRule& rule, const States& operands,
                   const States& wanted);
  uint64_t AllowedFactors(const Instruction& instr, const ShardingRule& rule) const;
  Decision* Evaluate(InstrId id, const ShardingRule& rule, const FactorAssignment& assignment,
                     const States& operands, const States& wanted);
  double LocalSeconds(const Instruction& instr, const std::vector<const Shape*>& operand_shapes,
                      const Decision& d) const;

  // plan_custom_call.cc
  void PlanMissing(InstrId id);
  void PlanCallbacks(InstrId id);
  void PlanReplicated(InstrId id);
  void CheckUneven(InstrId id, const Decision& d);

  const Program& program_;
  const Module& module_;
  const LeafTable& leaves_;
  const PropagationResult& propagation_;
  RuleTable& rules_;
  const SpmdOptions& options_;
  Context& context_;
  Plan plan_;
  absl::flat_hash_map<MemoKey, MemoEntry> memo_;
  std::vector<uint32_t> num_uses_;      // by instruction
  std::vector<InstrId> last_user_;      // by instruction
  std::vector<std::string> errors_;     // E101, E150
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLANNER_H_
