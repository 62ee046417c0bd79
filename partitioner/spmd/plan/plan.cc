// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/ir/trip_count.h"
#include "shardcall/partitioner/spmd/plan/planner.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

Planner::Planner(const Program& program, const PropagationResult& propagation, RuleTable& rules,
                 const SpmdOptions& options)
    : program_(program),
      module_(program.module),
      leaves_(program.leaves),
      propagation_(propagation),
      rules_(rules),
      options_(options),
      context_(program.module.context()),
      copies_(context_, program.leaves.num_leaves()),
      num_uses_(program.module.num_instructions()),
      last_user_(program.module.num_instructions()) {}

const Sharding* Planner::Replicated(InstrId id, const Shape* shape) const {
  return ReplicatedSharding(context_, program_.mesh, shape->rank(), program_.manual_axes(id));
}

const Sharding* Planner::Wanted(InstrId id, int flat) const {
  const Shape* shape = module_.instr(id).shape->leaf(flat);
  if (!shape->IsArray()) return nullptr;
  const Sharding* s = propagation_.sharding[leaves_.leaf(id, flat).value];
  // What is to live on one device is computed on all: values are equal.
  if (s == nullptr || s->is_maximal()) return Replicated(id, shape);
  return s;
}

const Sharding* Planner::WantedOfOp(InstrId id, int flat) const {
  const Sharding* s = Wanted(id, flat);
  if (num_uses_[id.value] == 1 && !module_.instr(id).shape->IsTuple()) {
    const InstrId user = last_user_[id.value];
    if (program_.annotation[user.value] == AnnotationKind::kIdentity) {
      const Sharding* next = Wanted(user, 0);
      if (next != nullptr && !next->partial().empty()) return next;
    }
  }
  return s;
}

States Planner::OperandStates(InstrId id, CopyList* copies) const {
  States out;
  for (InstrId o : module_.operands(id)) {
    const int n = module_.instr(o).shape->num_leaves();
    for (int k = 0; k < n; ++k) {
      const LeafId leaf = leaves_.canonical(o, k);
      const Copies* c = copies == nullptr ? nullptr : copies_.of(leaf);
      if (c != nullptr) {
        copies->resize(out.size(), nullptr);
        copies->push_back(c);
      }
      out.push_back(plan_.state[leaf.value]);
    }
  }
  if (copies != nullptr && !copies->empty()) copies->resize(out.size(), nullptr);
  return out;
}

Shapes Planner::OperandShapes(InstrId id) const {
  Shapes out;
  for (InstrId o : module_.operands(id)) {
    const Shape* shape = module_.instr(o).shape;
    for (int k = 0; k < shape->num_leaves(); ++k) out.push_back(shape->leaf(k));
  }
  return out;
}

const Decision* Planner::Keep(const Decision& d) {
  Arena& arena = context_.arena();
  Decision* kept = arena.New<Decision>(d);
  absl::InlinedVector<absl::Span<const AxisRef>, 8> axes;
  for (absl::Span<const AxisRef> a : d.factor_axes) axes.push_back(arena.Copy(a));
  kept->factor_axes = arena.Copy(absl::MakeConstSpan(axes));
  kept->operands = arena.Copy(d.operands);
  kept->produced = arena.Copy(d.produced);
  kept->final = d.final == d.produced ? kept->produced : arena.Copy(d.final);
  return kept;
}

void Planner::Finish(InstrId id, PlanKind kind, const Decision* decision) {
  if (decision != nullptr) NoteCopies(id, kind, *decision);
  SetDecision(id, kind, decision);
}

void Planner::SetDecision(InstrId id, PlanKind kind, const Decision* decision) {
  plan_.ops[id.value] = {kind, decision};
  if (decision == nullptr) return;
  for (size_t k = 0; k < decision->final.size(); ++k) {
    SetState(id, static_cast<int>(k), decision->final[k]);
  }
}

void Planner::NoteCopies(InstrId id, PlanKind kind, const Decision& d) {
  // A callback chooses when it runs, and a barrier's values are new ones.
  const bool fetches = kind != PlanKind::kCallbacks && kind != PlanKind::kBarrier;
  size_t leaf = 0;
  for (InstrId o : module_.operands(id)) {
    const Shape* shape = module_.instr(o).shape;
    for (int k = 0; fetches && k < shape->num_leaves(); ++k, ++leaf) {
      if (leaf >= d.operands.size() || d.operands[leaf] == nullptr) continue;
      const Sharding* stored = State(o, k);
      if (stored == nullptr || stored == d.operands[leaf]) continue;
      const LeafId canonical = leaves_.canonical(o, k);
      copies_.Set(canonical,
                  copies_.After(shape->leaf(k), stored, copies_.of(canonical), d.operands[leaf]));
    }
  }
  for (size_t k = 0; k < d.final.size(); ++k) {
    const int flat = static_cast<int>(k);
    const Sharding* made = d.produced[k];
    const LeafId now = leaves_.canonical(id, flat);
    if (kind == PlanKind::kIdentity && made != nullptr) {
      const LeafId from = leaves_.canonical(module_.operand(id, 0), flat);
      copies_.Set(now, copies_.AfterAnnotation(plan_.state[from.value], copies_.of(from), made));
      continue;
    }
    copies_.Set(now,
                made == nullptr || made == d.final[k] || kind == PlanKind::kCallbacks
                    ? nullptr
                    : copies_.AfterResult(module_.instr(id).shape->leaf(flat), made, d.final[k]));
  }
}

double Planner::ReshardBytes(const Shape* shape, const Sharding* from, const Copies* copies,
                             const Sharding* to, int* collectives) {
  if (from == to || from == nullptr || to == nullptr) return 0;
  const ReshardPlan& plan = copies_.Plan(shape, from, copies, to);
  for (const Move& m : plan.moves) *collectives += m.bytes > 0;
  return plan.bytes;
}

void Planner::PlanInstruction(InstrId id) {
  if (!behind_missing_.empty()) behind_missing_[id.value] = BehindMissing(id);
  const AnnotationKind annotation = program_.annotation[id.value];
  if (annotation != AnnotationKind::kNone) {
    PlanStructural(id);
    return;
  }
  const Opcode opcode = module_.instr(id).opcode;
  const bool called = opcode == Opcode::kCustomCall && program_.num_partitions > 1;
  if ((called || any_maximal_ || HasTrait(opcode, kSideEffect)) && PlanOneDevice(id)) return;
  switch (rules_.op_class(id)) {
    case OpClass::kRule:
      if (!rules_.PartitionedByCallback(id)) {
        PlanRule(id, *rules_.rule(id));
      } else if (PlanCallbacks(id)) {
        return;
      }
      break;
    case OpClass::kStructural:
    case OpClass::kAnnotation: PlanStructural(id); break;
    case OpClass::kCallbacks:
      if (PlanCallbacks(id)) return;
      break;
    case OpClass::kManualOnly: PlanManual(id); break;
    case OpClass::kMissing:
      if (PlanMissing(id)) return;
      break;
  }
  if (called) CheckSideEffect(id);
}

void Planner::PlanComputation(CompId comp) {
  copies_.Clear();
  for (InstrId id : module_.comp(comp).instructions) PlanInstruction(id);
}

// Executions of each computation per execution of the program.
void Planner::SetTripCounts(const std::vector<CompId>& order) {
  plan_.trip_count.assign(module_.num_computations(), 0);
  plan_.trip_count[module_.entry().value] = 1;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {  // callers first
    const double times = plan_.trip_count[it->value];
    for (InstrId id : module_.comp(*it).instructions) {
      const Instruction& instr = module_.instr(id);
      double factor = 1;
      if (instr.opcode == Opcode::kWhile) {
        factor = TripCountOr(module_, id, options_.cost.trip_count);
      }
      for (CompId callee : CalledComputations(module_, instr)) {
        plan_.trip_count[callee.value] += times * factor;
      }
    }
  }
}

absl::StatusOr<Plan> Planner::Run() {
  SHARDCALL_RETURN_IF_ERROR(rules_.status());
  plan_.ops.resize(module_.num_instructions());
  plan_.state.resize(leaves_.num_leaves(), nullptr);
  for (int i = 0; i < module_.num_instructions(); ++i) {
    for (InstrId o : module_.operands(InstrId(i))) {
      ++num_uses_[o.value];
      last_user_[o.value] = InstrId(i);
    }
  }
  any_maximal_ = program_.num_partitions > 1 &&
                 std::any_of(program_.owned_constraints.begin(), program_.owned_constraints.end(),
                             [](const auto& c) { return c->maximal_device >= 0; });
  const std::vector<CompId> order = ComputationPostOrder(module_);
  SetTripCounts(order);
  for (CompId comp : PartitionedComputations(program_, order)) PlanComputation(comp);
  SHARDCALL_RETURN_IF_ERROR(rules_.status());
  for (const auto& [target, missing] : missing_) {
    if (missing.calls <= kMostNamedCalls) continue;
    absl::StrAppend(&errors_[missing.last_error], "\n  and so have ",
                    missing.calls - kMostNamedCalls, " more calls of it");
  }
  if (!errors_.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors_, "\n"));

  const Computation& entry = module_.comp(module_.entry());
  for (InstrId p : entry.parameters) {
    for (int k = 0; k < module_.instr(p).shape->num_leaves(); ++k) {
      plan_.parameters.push_back(State(p, k));
    }
  }
  for (int k = 0; k < module_.instr(entry.root).shape->num_leaves(); ++k) {
    // No value is given out on one device alone. What the program says is unreduced stays so:
    // nothing else is when it is propagated.
    const Sharding* s = propagation_.outputs[k];
    const Shape* shape = module_.instr(entry.root).shape->leaf(k);
    const bool whole = shape->IsArray() && (s == nullptr || s->is_maximal());
    plan_.outputs.push_back(
        whole ? ReplicatedSharding(module_.context(), program_.mesh, shape->rank()) : s);
  }
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
      if (instr.opcode != Opcode::kWhile && instr.opcode != Opcode::kConditional &&
          instr.opcode != Opcode::kCall) {
        continue;
      }
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
                              RuleTable& rules, const SpmdOptions& options) {
  return Planner(program, propagation, rules, options).Run();
}

}  // namespace shardcall
