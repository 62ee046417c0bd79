// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lower/lower_computation.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/runtime/fuse/fuse.h"
#include "shardcall/partitioner/runtime/lower/computation_lowering.h"
#include "shardcall/partitioner/runtime/lower/dynamic_sizes.h"
#include "shardcall/partitioner/runtime/lower/lower_started.h"
#include "shardcall/partitioner/runtime/lower/lower_table.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 44;
// Callees with at most this many instructions are inlined, up to this depth.
constexpr size_t kMaxInlined = 64;
constexpr int kMaxInlineDepth = 16;

}  // namespace

Step ComputationLowering::NewStep(const LowerContext& context) const {
  Step step;
  step.opcode = context.instr.opcode;
  step.name = context.instr.name.empty()
                  ? absl::StrCat(OpcodeText(step.opcode), ".id", context.id.value)
                  : std::string(context.instr.name);
  return step;
}

absl::Status ComputationLowering::AddResults(const LowerContext& context, int first, int count,
                                             Step* step, Slots* result) {
  for (int k = first; k < first + count; ++k) {
    step->shapes.push_back(MakeLeafShape(*context.instr.shape->leaf(k)));
    int64_t elements = 1;
    for (int64_t d : step->shapes.back().dims) {
      if (d < 0 || (d > 0 && elements > kMaxElements / d)) {
        return context.Error("E311", "the result is too large to be held",
                             "Give the program smaller arrays, or run it over more devices");
      }
      elements *= d;
    }
    step->results.push_back(NewSlot());
    result->push_back(step->results.back());
  }
  return absl::OkStatus();
}

absl::Status ComputationLowering::Emit(const LowerContext& context, int first, int count,
                                       Slots* result) {
  Step step = NewStep(context);
  for (int32_t slot : OperandSlots(context.instr)) step.operands.push_back({slot, false});
  SHARDCALL_RETURN_IF_ERROR(AddResults(context, first, count, &step, result));
  const SizedKind kind =
      options_.dynamic == nullptr ? SizedKind::kNot : SizedKindOf(m_, context.instr);
  step.sized = kind == SizedKind::kPasses;
  if (kind == SizedKind::kFullOnly) {
    Step check;
    check.opcode = step.opcode;
    check.name = step.name;
    check.operands = step.operands;
    SHARDCALL_RETURN_IF_ERROR(LowerFullSizes(context, &check));
    out_->steps.push_back(std::move(check));
  }
  SHARDCALL_RETURN_IF_ERROR(kind == SizedKind::kMade ? LowerSized(context, &step)
                                                     : LowerByOpcode(context, &step));
  if (context.instr.opcode == Opcode::kCustomCall &&
      !HasTrait(KnownTargetOf(context.instr), kManualBoundaryTarget)) {
    program_->targets.push_back({std::string(context.instr.as<CustomCallAttrs>().target), step.name,
                                 std::string(context.instr.backend_config)});
  }
  out_->steps.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status ComputationLowering::EmitStarted(const LowerContext& context, Slots* result) {
  Step step = NewStep(context);
  *result = {NewSlot()};
  SHARDCALL_RETURN_IF_ERROR(LowerStart(context, OperandSlots(context.instr), (*result)[0], &step));
  out_->steps.push_back(std::move(step));
  program_->has_starts = true;
  return absl::OkStatus();
}

absl::Status ComputationLowering::EmitDone(const LowerContext& context, Slots* result) {
  Step step = NewStep(context);
  SHARDCALL_RETURN_IF_ERROR(
      AddResults(context, 0, context.instr.shape->num_leaves(), &step, result));
  LowerDone(OperandSlots(context.instr)[0], &step);
  out_->steps.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status ComputationLowering::EmitStart(const LowerContext& context, Slots* result) {
  if (IsStarted(context.id)) return EmitStarted(context, result);
  const Shape& shape = *context.instr.shape;
  if (context.instr.opcode == Opcode::kAllReduceStart) {
    return Emit(context, 0, shape.num_leaves(), result);
  }
  if (!shape.IsTuple() || shape.tuple().size() < 2) {
    return context.Error("E311", "an asynchronous start must have a tuple of operands and results");
  }
  const int first = shape.tuple()[0]->num_leaves();
  const int count = shape.tuple()[1]->num_leaves();
  Slots operands = OperandSlots(context.instr);
  if (static_cast<int>(operands.size()) != first) {
    return context.Unimplemented("this form of asynchronous start");
  }
  Slots made;
  SHARDCALL_RETURN_IF_ERROR(Emit(context, first, count, &made));
  *result = operands;
  result->insert(result->end(), made.begin(), made.end());
  for (int k = first + count; k < shape.num_leaves(); ++k) {  // contexts, which nothing reads
    const LeafShape leaf = MakeLeafShape(*shape.leaf(k));
    result->push_back(ConstantSlot(Tensor::Zeros(leaf.type, leaf.dims)));
  }
  return absl::OkStatus();
}

void ComputationLowering::FindLastUses() {
  std::vector<bool> seen(out_->num_slots);
  auto last = [&](OperandRef& ref) {
    ref.last = !seen[ref.slot];
    seen[ref.slot] = true;
  };
  for (size_t k = out_->root.size(); k-- > 0;) last(out_->root[k]);
  for (size_t s = out_->steps.size(); s-- > 0;) {
    Step& step = out_->steps[s];
    for (int32_t slot : step.results) {
      if (!seen[slot]) step.unread.push_back(slot);
    }
    for (size_t k = step.operands.size(); k-- > 0;) last(step.operands[k]);
  }
  for (int32_t& slot : out_->parameters) {
    if (!seen[slot]) slot = -1;
  }
}

absl::StatusOr<bool> ComputationLowering::Inline(const LowerContext& context, Slots* result) {
  const Instruction& i = context.instr;
  const auto callees = CalledComputations(m_, i);
  if (!options_.fuse || callees.size() != 1 || !callees[0].valid() || depth_ >= kMaxInlineDepth) {
    return false;
  }
  const Computation& callee = m_.comp(callees[0]);
  const int64_t size = static_cast<int64_t>(callee.instructions.size());
  if (callee.instructions.size() > kMaxInlined || size > *inline_budget_) return false;
  Step call;  // only for its checks
  call.opcode = i.opcode;
  SHARDCALL_RETURN_IF_ERROR(LowerCall(context, &call));
  *inline_budget_ -= size;
  ComputationLowering body(m_, options_, callee, live_, &position_, inline_budget_, program_, out_,
                           depth_ + 1);
  SHARDCALL_RETURN_IF_ERROR(body.Survey());
  const Slots operands = OperandSlots(i);
  size_t next = 0;
  for (InstrId id : callee.parameters) {
    for (int k = 0; k < m_.instr(id).shape->num_leaves(); ++k) {
      body.slots(id).push_back(operands[next++]);
    }
  }
  SHARDCALL_RETURN_IF_ERROR(body.LowerInstructions());
  *result = body.slots(callee.root);
  return true;
}

absl::Status ComputationLowering::Survey() {
  if (comp_.instructions.empty() || !comp_.root.valid()) {
    return ToStatus({.code = "E311",
                     .message = "a computation has no root",
                     .where = std::string(comp_.name),
                     .fix = "Mark its result as ROOT"});
  }
  for (size_t k = 0; k < comp_.instructions.size(); ++k) {
    position_[comp_.instructions[k].value] = static_cast<uint32_t>(k);
  }
  if (options_.dynamic == nullptr) started_ = FindStarted(m_, comp_, position_);
  return absl::OkStatus();
}

absl::Status ComputationLowering::LowerInstructions() {
  for (size_t k = 0; k < comp_.instructions.size(); ++k) {
    const InstrId id = comp_.instructions[k];
    const Instruction& i = m_.instr(id);
    if (!live_.Has(id) || i.opcode == Opcode::kParameter) continue;
    const LowerContext context(m_, options_, id);
    Slots result;
    const bool ends = i.opcode != Opcode::kAsyncUpdate && HasTrait(i.opcode, kAsyncForm) &&
                      i.operand_count == 1 && IsStarted(m_.operands(i)[0]);
    if (ends) {
      SHARDCALL_RETURN_IF_ERROR(EmitDone(context, &result));
      slots(id) = std::move(result);
      continue;
    }
    SHARDCALL_ASSIGN_OR_RETURN(bool done, Alias(context, &result));
    if (!done && (i.opcode == Opcode::kCall || i.opcode == Opcode::kFusion)) {
      SHARDCALL_ASSIGN_OR_RETURN(done, Inline(context, &result));
    }
    if (!done) {
      const bool starts = i.opcode == Opcode::kAsyncStart ||
                          (HasTrait(i.opcode, kAsyncForm) && FormsStartedBy(i.opcode) != nullptr);
      SHARDCALL_RETURN_IF_ERROR(starts ? EmitStart(context, &result)
                                       : Emit(context, 0, i.shape->num_leaves(), &result));
    }
    slots(id) = std::move(result);
  }
  return absl::OkStatus();
}

absl::Status ComputationLowering::Run() {
  out_->name = std::string(comp_.name);
  SHARDCALL_RETURN_IF_ERROR(Survey());
  for (InstrId id : comp_.parameters) {
    for (int k = 0; k < m_.instr(id).shape->num_leaves(); ++k) {
      slots(id).push_back(NewSlot());
      out_->parameters.push_back(slots(id).back());
    }
  }
  SHARDCALL_RETURN_IF_ERROR(LowerInstructions());
  for (int32_t slot : slots(comp_.root)) out_->root.push_back({slot, false});
  if (options_.fuse) FuseSteps(out_);
  FindLastUses();
  return absl::OkStatus();
}

absl::Status LowerComputation(const Module& module, const LowerOptions& options, CompId comp,
                              const Liveness& live, std::vector<uint32_t>* position,
                              int64_t* inline_budget, DeviceProgram* program,
                              ProgramComputation* out) {
  return ComputationLowering(module, options, module.comp(comp), live, position, inline_budget,
                             program, out, 0)
      .Run();
}

}  // namespace internal
}  // namespace shardcall
