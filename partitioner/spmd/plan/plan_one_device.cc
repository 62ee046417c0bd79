// SPDX-License-Identifier: Apache-2.0
// Ops that one device runs for all, infeed and outfeed, and ops with side effects whose device no
// annotation names.
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/analysis/called_computations.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/text/source_line.h"
#include "shardcall/partitioner/spmd/plan/planner.h"
#include "shardcall/partitioner/spmd/plan/transfers.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

AxisList FreeAxes(const Program& program, InstrId id) {
  return Complement(*program.mesh, program.manual_axes(id));
}

int64_t RunsOnDevice(const Program& program, InstrId id) {
  if (program.num_partitions == 1) return -1;
  int64_t device = MaximalDevice(program, id);
  if (device < 0 && IsDrawnOnce(program.module.instr(id))) device = 0;
  // In a region that is manual over all axes every device has a value of its own.
  if (device >= 0 && AxesSize(FreeAxes(program, id)) == 1) return -1;
  return device;
}

bool Planner::PlanOneDevice(InstrId id) {
  if (program_.num_partitions == 1) return false;
  const Instruction& instr = module_.instr(id);
  const InstrId start = TransferStart(module_, id);
  if (start.valid()) {
    if (RunsOnDevice(program_, start) < 0) return false;
    PlanTransferEnd(id, start);
    return true;
  }
  if (RunsOnDevice(program_, id) >= 0) {
    CheckWhole(id);
    if (IsTransfer(instr.opcode)) {
      // The end of the transfer, its only user, emits both ops.
      if (table_.last_user(id).valid() && TransferStart(module_, table_.last_user(id)) == id) {
        plan_.ops[id.value] = {PlanKind::kDead, nullptr};
        return true;
      }
      Diagnostic e;
      e.code = "E106";
      e.message =
          absl::StrCat("the ", OpcodeText(instr.opcode), " %", instr.name, " of device ",
                       RunsOnDevice(program_, id), " starts in one place and ends in another");
      e.where = SourceLine(module_, instr);
      e.expected = "a start whose end is its only user";
      e.fix = "End it in the same computation, or write it into a manual region";
      errors_.push_back(FormatDiagnostic(e));
      PlanReplicated(id);
    } else {
      PlanReplicated(id, PlanKind::kOneDevice);
    }
    return true;
  }
  const bool feed = instr.opcode == Opcode::kInfeed || instr.opcode == Opcode::kOutfeed;
  if (feed || IsTransfer(instr.opcode)) CheckSideEffect(id);
  if (feed) PlanFeed(id);
  return feed;
}

void Planner::PlanTransferEnd(InstrId id, InstrId start) {
  const Instruction& instr = module_.instr(id);
  States need, produced;
  for (const Shape* shape : table_.OperandShapes(start)) {
    need.push_back(shape->IsArray() ? table_.Replicated(id, shape) : nullptr);
  }
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    const Shape* leaf = instr.shape->leaf(k);
    produced.push_back(leaf->IsArray() ? table_.Replicated(id, leaf) : nullptr);
  }
  // The end takes the operands of the start.
  table_.NoteOperandCopies(start, need);
  Decision d;
  d.operands = need;
  d.produced = d.final = produced;
  table_.Finish(id, PlanKind::kOneDevice, table_.Keep(d));
}

void Planner::PlanFeed(InstrId id) {
  const Instruction& instr = module_.instr(id);
  const Shapes shapes = table_.OperandShapes(id);
  const auto said = program_.outfeeds.find(id);
  Decision d;
  States need, produced;
  for (size_t k = 0; k < shapes.size(); ++k) {
    if (!shapes[k]->IsArray()) {
      need.push_back(nullptr);
      continue;
    }
    const ShardingConstraint* c = said == program_.outfeeds.end() ? nullptr : said->second[k];
    if (c == nullptr || c->unknown || c->maximal_device >= 0) {
      need.push_back(table_.Replicated(id, shapes[k]));
      continue;
    }
    ShardingBuilder b(c->mesh, shapes[k]->rank());
    for (int i = 0; i < shapes[k]->rank(); ++i) b.dims[i] = c->dims[i].axes;
    b.manual.assign(program_.manual_axes(id).begin(), program_.manual_axes(id).end());
    need.push_back(b.Intern(context_));
  }
  for (int k = 0; k < instr.shape->num_leaves(); ++k) produced.push_back(table_.Wanted(id, k));
  CopyList copies;
  const States operands = table_.OperandStates(id, &copies);
  for (size_t k = 0; k < shapes.size(); ++k) {
    d.bytes += table_.ReshardTraffic(shapes[k], operands[k], CopiesAt(copies, k), need[k]).bytes;
  }
  d.operands = need;
  d.produced = d.final = produced;
  table_.Finish(id, PlanKind::kFeed, table_.Keep(d));
}

void Planner::CheckWhole(InstrId id) {
  const Instruction& instr = module_.instr(id);
  std::vector<CompId> work;
  std::vector<bool> seen(module_.num_computations(), false);
  const auto push = [&](const Instruction& i) {
    for (CompId c : CalledComputations(module_, i)) {
      if (!seen[c.value]) work.push_back(c);
      seen[c.value] = true;
    }
  };
  for (push(instr); !work.empty();) {
    const Computation& comp = module_.comp(work.back());
    work.pop_back();
    for (InstrId inner : comp.instructions) {
      const Instruction& i = module_.instr(inner);
      push(i);
      if (!HasTrait(i.opcode, kCollectiveOp) &&
          program_.annotation[inner.value] != AnnotationKind::kManualBoundary) {
        continue;
      }
      Diagnostic e;
      e.code = "E106";
      e.message = absl::StrCat("%", i.name, " stands in what device ", RunsOnDevice(program_, id),
                               " alone runs (", OpcodeText(instr.opcode), " %", instr.name,
                               "), and needs other devices");
      e.where = SourceLine(module_, i);
      e.expected = "no collective and no manual region there";
      e.found = std::string(OpcodeText(i.opcode));
      e.fix = absl::StrCat("Take the sharding from %", instr.name,
                           ", or put it on the ops inside that one device is to run");
      errors_.push_back(FormatDiagnostic(e));
      return;
    }
  }
}

// An op with side effects and no way to partition it would run on every device. That is an error,
// except in a manual region and where the program or its caller allows it.
void Planner::CheckSideEffect(InstrId id) {
  const Instruction& instr = module_.instr(id);
  if (!program_.manual_axes(id).empty()) return;
  const bool call = instr.opcode == Opcode::kCustomCall;
  const Text target = call ? Text(instr.as<CustomCallAttrs>().target) : Text();
  if (call && (!instr.as<CustomCallAttrs>().has_side_effect || rules_.has_rule(id) ||
               rules_.MayReplicate(target) ||
               KnownTargetOf(instr) ==
                   KnownTarget::kInspectSharding)) {  // it only acts at partitioning time
    return;
  }
  bool says = instr.sharding != nullptr;
  for (int k = 0; k < instr.shape->num_leaves(); ++k) {
    says = says || program_.constraints[leaves_.leaf(id, k).value] != nullptr;
  }
  const TargetRule* rule = rules_.target(id);
  // An annotation does not help a transfer, which has only one peer.
  if (says && !IsTransfer(instr.opcode) &&
      (!call || (rule != nullptr && rule->level == RuleLevel::kCallbacks &&
                 rule->callbacks.can_side_effecting_have_replicated_sharding))) {
    return;
  }
  Diagnostic e;
  e.code = "E104";
  e.message = absl::StrCat(
      call ? absl::StrCat("target \"", target, "\"") : std::string(OpcodeText(instr.opcode)), " (%",
      instr.name, ") has side effects, and each of ", program_.num_partitions,
      " devices would run it");
  e.where = SourceLine(module_, instr);
  e.expected = "a sharding that says which device does";
  e.found = says ? "an op that is replicated" : "an op without a sharding";
  e.fix = "Write sharding={maximal device=0} on it";
  if (call) {
    absl::StrAppend(&e.fix,
                    "; or, if every device may, sharding={replicated}, and register the target "
                    "with can_side_effecting_have_replicated_sharding");
  } else if (!IsTransfer(instr.opcode)) {
    absl::StrAppend(&e.fix, "; or that of its data, if every device feeds what it holds of them");
  }
  errors_.push_back(FormatDiagnostic(e));
}

}  // namespace shardcall
