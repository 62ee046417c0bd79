// SPDX-License-Identifier: Apache-2.0
// Control flow, annotations, manual regions, and ops that keep the states of their operands.
#include "shardcall/partitioner/ir/row_by_opcode.h"
#include "shardcall/partitioner/spmd/plan/plan_gathers.h"
#include "shardcall/partitioner/spmd/plan/planner.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

enum class Form { kParameter, kConstant, kAlias, kWhile, kConditional, kCall, kBarrier };
struct StructuralRow {
  Opcode opcode;
  Form form;
};
constexpr StructuralRow kStructuralRows[] = {
    {Opcode::kParameter, Form::kParameter}, {Opcode::kConstant, Form::kConstant},
    {Opcode::kTuple, Form::kAlias},         {Opcode::kGetTupleElement, Form::kAlias},
    {Opcode::kWhile, Form::kWhile},         {Opcode::kConditional, Form::kConditional},
    {Opcode::kCall, Form::kCall},           {Opcode::kAfterAll, Form::kBarrier},
    {Opcode::kOptBarrier, Form::kBarrier},
};
static_assert(HasRowPerOp(kStructuralRows, &OpcodeNames::rule, "Structural"));

}  // namespace

void Planner::PlanPassedStates(InstrId id, PlanKind kind, const States& operands) {
  const Instruction& instr = module_.instr(id);
  States produced;
  for (int k = 0; k < instr.shape->num_leaves(); ++k) produced.push_back(table_.Wanted(id, k));
  Decision d;
  d.operands = operands;
  d.produced = d.final = produced;
  table_.Finish(id, kind, table_.Keep(d));
}

void Planner::PlanControlFlow(InstrId id, PlanKind kind, const States& operands,
                              const States& produced) {
  States final;
  for (int k = 0; k < module_.instr(id).shape->num_leaves(); ++k) {
    final.push_back(table_.Wanted(id, k));
  }
  Decision d;
  d.operands = operands;
  d.produced = produced;
  d.final = final;
  NoteOperandGathers(table_, id, Gather::Kind::kState, d.operands);
  table_.Finish(id, kind, table_.Keep(d));
}

void Planner::PlanStructural(InstrId id) {
  const Instruction& instr = module_.instr(id);
  switch (program_.annotation[id.value]) {
    case AnnotationKind::kGroup: plan_.ops[id.value] = {PlanKind::kDead, nullptr}; return;
    case AnnotationKind::kIdentity: {
      States need;
      for (int k = 0; k < instr.shape->num_leaves(); ++k) need.push_back(table_.Wanted(id, k));
      PlanPassedStates(id, PlanKind::kIdentity, need);
      return;
    }
    case AnnotationKind::kManualBoundary: PlanBoundary(id, program_.boundaries.at(id)); return;
    case AnnotationKind::kNone: break;
  }
  const StructuralRow* const row = RowByOpcode(kStructuralRows, instr.opcode);
  SHARDCALL_CHECK(row != nullptr);
  switch (row->form) {
    case Form::kParameter: PlanPassedStates(id, PlanKind::kParameter, {}); return;
    case Form::kConstant: {
      States produced;
      for (int k = 0; k < instr.shape->num_leaves(); ++k) {
        const Shape* leaf = instr.shape->leaf(k);
        produced.push_back(leaf->IsArray() ? table_.Replicated(id, leaf) : nullptr);
      }
      Decision d;
      d.produced = d.final = produced;
      table_.Finish(id, PlanKind::kConstant, table_.Keep(d));
      return;
    }
    case Form::kAlias:
      plan_.ops[id.value] = {PlanKind::kAlias, nullptr};
      waiting_.NoteStack(id);
      return;
    case Form::kWhile: {
      States carried;
      for (int k = 0; k < instr.shape->num_leaves(); ++k) carried.push_back(table_.Wanted(id, k));
      waiting_.SetCarried(id, &carried);
      PlanControlFlow(id, PlanKind::kWhile, carried, carried);
      return;
    }
    case Form::kConditional: {
      const Shape* predicate = module_.instr(module_.operand(id, 0)).shape;
      States need{table_.Replicated(id, predicate)}, produced;
      for (CompId c : CalledComputations(module_, instr)) AppendParameters(c, &need);
      for (int k = 0; k < instr.shape->num_leaves(); ++k) produced.push_back(table_.Wanted(id, k));
      PlanControlFlow(id, PlanKind::kConditional, need, produced);
      return;
    }
    case Form::kCall: PlanCall(id, CalledComputations(module_, instr)[0]); return;
    case Form::kBarrier: {
      // The op keeps the states; leaves that alias their operand have them already.
      const States operands = table_.OperandStates(id);
      States produced;
      for (int k = 0; k < instr.shape->num_leaves(); ++k) {
        produced.push_back(instr.shape->leaf(k)->IsArray() ? operands[k] : nullptr);
      }
      Decision d;
      d.operands = operands;
      d.produced = d.final = produced;
      table_.Finish(id, PlanKind::kBarrier, table_.Keep(d));
      return;
    }
  }
}

// Appends the states in which the parameters of a computation are wanted.
void Planner::AppendParameters(CompId comp, States* states) const {
  for (InstrId p : module_.comp(comp).parameters) {
    for (int k = 0; k < module_.instr(p).shape->num_leaves(); ++k) {
      states->push_back(table_.Wanted(p, k));
    }
  }
}

// The callee may have other callers. So its parameters and root have states of their own, and each
// call reshards to and from them.
void Planner::PlanCall(InstrId id, CompId callee) {
  States need, produced;
  AppendParameters(callee, &need);
  for (int k = 0; k < module_.instr(id).shape->num_leaves(); ++k) {
    produced.push_back(table_.Wanted(module_.comp(callee).root, k));
  }
  PlanControlFlow(id, PlanKind::kCall, need, produced);
}

void Planner::PlanBoundary(InstrId id, const ManualBoundary& boundary) {
  const Instruction& instr = module_.instr(id);
  const Shapes shapes = table_.OperandShapes(id);
  const States operands = table_.OperandStates(id);
  States need, produced, final;
  for (size_t k = 0; k < shapes.size(); ++k) {
    const Shape* in = shapes[k];
    const Shape* out = instr.shape->leaf(static_cast<int>(k));
    const Sharding* wanted = table_.Wanted(id, static_cast<int>(k));
    if (!in->IsArray()) {
      need.push_back(nullptr);
      produced.push_back(nullptr);
      final.push_back(nullptr);
      continue;
    }
    // Free axes are minor to the manual ones where they divide the local dimension evenly; else the
    // dimension is not sharded over free axes at the boundary.
    const Shape* local = boundary.entry ? out : in;
    const Sharding* inner_wish = boundary.entry ? wanted : operands[k];
    const AxisList inner_manual(inner_wish->manual().begin(), inner_wish->manual().end());
    ShardingBuilder inner(program_.mesh, local->rank());
    ShardingBuilder outer(program_.mesh, local->rank());
    inner.manual = inner_manual;
    outer.manual = Minus(*program_.mesh, inner_manual, boundary.manual_axes);
    for (int dim = 0; dim < local->rank(); ++dim) {
      const AxisList& manual = boundary.manual_dims[k][dim];
      AxisList free(inner_wish->dim(dim).begin(), inner_wish->dim(dim).end());
      if (!manual.empty() && local->dim(dim) % AxesSize(free) != 0) free.clear();
      inner.dims[dim] = free;
      outer.dims[dim] = manual;
      outer.dims[dim].insert(outer.dims[dim].end(), free.begin(), free.end());
    }
    outer.partial = boundary.manual_partial[k].axes;
    if (!outer.partial.empty()) outer.partial_op = boundary.manual_partial[k].op;
    const Sharding* inside = inner.Intern(context_);
    const Sharding* outside = outer.Intern(context_);
    need.push_back(boundary.entry ? outside : inside);
    produced.push_back(boundary.entry ? inside : outside);
    final.push_back(wanted);
  }
  Decision d;
  d.operands = need;
  d.produced = produced;
  d.final = final;
  table_.Finish(id, PlanKind::kBoundary, table_.Keep(d));
}

void Planner::PlanManual(InstrId id) {
  const Instruction& instr = module_.instr(id);
  if (!HasTrait(instr.opcode, kCollectiveOp)) {  // partition-id, replica-id
    PlanPassedStates(id, PlanKind::kManual, {});
    return;
  }
  PlanRule(id, *rules_.rule(id));
}

}  // namespace internal
}  // namespace shardcall
