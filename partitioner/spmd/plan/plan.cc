// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/analysis/trip_count.h"
#include "shardcall/partitioner/spmd/plan/planner.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall {

Planner::Planner(const Program& program, const PropagationResult& propagation, RuleTable& rules,
                 const SpmdOptions& options, PlanMemo* memo)
    : program_(program),
      module_(program.module),
      leaves_(program.leaves),
      propagation_(propagation),
      rules_(rules),
      options_(options),
      context_(program.module.context()),
      table_(program, propagation, options, &memo->copies, &memo->facts),
      plan_(table_.plan()),
      decider_(program, rules, options, table_, *memo),
      waiting_(program, options, table_),
      invariants_(program, table_, options.cost.trip_count),
      missing_(program, rules, table_, &errors_) {}

void Planner::PlanInstruction(InstrId id) {
  missing_.Visit(id);
  if (program_.annotation[id.value] != AnnotationKind::kNone) {
    PlanStructural(id);
    return;
  }
  const Opcode opcode = module_.instr(id).opcode;
  const bool called = opcode == Opcode::kCustomCall && program_.num_partitions > 1;
  if ((called || any_maximal_ || HasTrait(opcode, kSideEffect)) && PlanOneDevice(id)) return;
  bool without_rule = false;
  switch (rules_.op_class(id)) {
    case OpClass::kRule:
      if (rules_.PartitionedByCallback(id)) {
        without_rule = !PlanCallbacks(id);
      } else {
        PlanRule(id, *rules_.rule(id));
      }
      break;
    case OpClass::kStructural:
    case OpClass::kAnnotation: PlanStructural(id); break;
    case OpClass::kCallbacks: without_rule = !PlanCallbacks(id); break;
    case OpClass::kManualOnly: PlanManual(id); break;
    case OpClass::kOnShards: PlanOnShards(id); break;
    case OpClass::kMissing: without_rule = true; break;
  }
  if (without_rule) {
    const bool error = missing_.IsError(id);
    PlanReplicated(id);
    if (error) return;
  }
  if (called) CheckSideEffect(id);
}

absl::Status Planner::PlanComputation(CompId comp) {
  table_.StartComputation(plan_.expected_runs[comp.value]);
  waiting_.StartComputation(module_.comp(comp).root);
  for (InstrId id : module_.comp(comp).instructions) {
    SHARDCALL_RETURN_IF_ERROR(CheckStop());
    PlanInstruction(id);
  }
  table_.EndComputation(module_.comp(comp).root);
  // Ops that do the same in all iterations send before the loop.
  for (const auto& [id, share] : invariants_.OpsOf(comp)) {
    const OpPlan& op = plan_.ops[id.value];
    if (op.kind != PlanKind::kRule || op.decision->bytes == 0) continue;
    const Decision& d = *op.decision;
    table_.Charge((share - 1) * d.bytes + d.saved_bytes, (share - 1) * d.seconds + d.saved);
  }
  return absl::OkStatus();
}

// Executions of each computation per execution of the program.
void Planner::SetEntryStates() {
  const Computation& entry = module_.comp(module_.entry());
  for (InstrId p : entry.parameters) {
    for (int k = 0; k < module_.instr(p).shape->num_leaves(); ++k) {
      plan_.parameters.push_back(table_.State(p, k));
    }
  }
  for (int k = 0; k < module_.instr(entry.root).shape->num_leaves(); ++k) {
    // An output is never on one device only. Outputs that the program annotates as unreduced stay
    // partial; propagation makes no others partial.
    const Sharding* s = propagation_.outputs[k];
    const Shape* shape = module_.instr(entry.root).shape->leaf(k);
    const bool whole = shape->IsArray() && (s == nullptr || s->is_maximal());
    plan_.outputs.push_back(
        whole ? ReplicatedSharding(module_.context(), program_.mesh, shape->rank()) : s);
    if (shape->IsArray()) {
      table_.ChargeReshard(1, shape, table_.State(entry.root, k), nullptr, plan_.outputs.back());
    }
  }
}

absl::StatusOr<Plan> Planner::Run() {
  SHARDCALL_RETURN_IF_ERROR(rules_.status());
  any_maximal_ = program_.num_partitions > 1 &&
                 std::any_of(program_.owned_constraints.begin(), program_.owned_constraints.end(),
                             [](const auto& c) { return c->maximal_device >= 0; });
  plan_.invariant_bytes = invariants_.bytes();
  const std::vector<CompId> order = ComputationPostOrder(module_);
  plan_.trip_count = RunsByComputation(module_, order, options_.cost.trip_count);
  plan_.expected_runs =
      RunsByComputation(module_, order, options_.cost.trip_count, BranchRuns::kExpected);
  for (CompId comp : PartitionedComputations(program_, order)) {
    SHARDCALL_RETURN_IF_ERROR(PlanComputation(comp));
  }
  SHARDCALL_RETURN_IF_ERROR(rules_.status());
  missing_.CountOthers();
  if (!errors_.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors_, "\n"));
  SetEntryStates();
  plan_.memo_hits = decider_.hits();
  plan_.memo_misses = decider_.misses();
  return std::move(plan_);
}

std::vector<CompId> PartitionedComputations(const Program& program,
                                            const std::vector<CompId>& post_order) {
  const Module& module = program.module;
  std::vector<bool> in(module.num_computations(), false);
  in[module.entry().value] = true;
  for (auto it = post_order.rbegin(); it != post_order.rend(); ++it) {  // callers first
    if (!in[it->value]) continue;
    for (InstrId id : module.comp(*it).instructions) {
      const Instruction& instr = module.instr(id);
      if (!HasTrait(instr.opcode, kControlFlow)) continue;
      if (RunsOnDevice(program, id) >= 0) continue;
      for (CompId c : CalledComputations(module, instr)) in[c.value] = true;
    }
  }
  std::vector<CompId> out;
  for (CompId c : post_order) {
    if (in[c.value]) out.push_back(c);
  }
  return out;
}

absl::StatusOr<Plan> MakePlan(const Program& program, const PropagationResult& propagation,
                              RuleTable& rules, const SpmdOptions& options, PlanMemo* memo) {
  PlanMemo own;
  return Planner(program, propagation, rules, options, memo == nullptr ? &own : memo).Run();
}

}  // namespace shardcall
