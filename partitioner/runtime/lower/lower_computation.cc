// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lower/lower_computation.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/liveness.h"
#include "shardcall/partitioner/runtime/fuse/fuse.h"
#include "shardcall/partitioner/runtime/lower/dynamic_sizes.h"
#include "shardcall/partitioner/runtime/lower/lower_started.h"
#include "shardcall/partitioner/runtime/lower/lower_table.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 44;
// Callees with at most this many instructions are inlined, up to this depth.
constexpr size_t kMaxInlined = 64;
constexpr int kMaxInlineDepth = 16;

class ComputationLowering {
 public:
  ComputationLowering(const Module& module, const LowerOptions& options, const Computation& comp,
                      const Liveness& live, std::vector<uint32_t>* position, int64_t* inline_budget,
                      DeviceProgram* program, ProgramComputation* out, int depth)
      : m_(module),
        options_(options),
        comp_(comp),
        live_(live),
        inline_budget_(inline_budget),
        program_(program),
        out_(out),
        depth_(depth),
        slots_(comp.instructions.size()),
        position_(*position) {}

  absl::Status Run();

 private:
  using Slots = absl::InlinedVector<int32_t, 2>;

  absl::Status Survey();
  // Emits steps for all live instructions except parameters, which have slots already.
  absl::Status LowerInstructions();
  // Emits the callee's steps in place of a call; false if it must be called.
  absl::StatusOr<bool> Inline(const LowerContext& context, Slots* result);

  Slots& slots(InstrId id) { return slots_[position_[id.value]]; }
  Slots OperandSlots(const Instruction& i) {
    Slots all;
    for (InstrId operand : m_.operands(i)) {
      const Slots& s = slots(operand);
      all.insert(all.end(), s.begin(), s.end());
    }
    return all;
  }
  int32_t NewSlot() { return out_->num_slots++; }
  int32_t ConstantSlot(Tensor value) {
    const int32_t slot = NewSlot();
    out_->constants.emplace_back(slot, std::move(value));
    return slot;
  }
  // The slots of instructions whose results exist already (tuple, bitcast and the like); false for
  // others.
  absl::StatusOr<bool> Alias(const LowerContext& context, Slots* result);
  absl::Status Constant(const LowerContext& context, const Literal& literal, Slots* result);
  // Emits a step for leaves [first, first + count) of the instruction's shape.
  absl::Status Emit(const LowerContext& context, int first, int count, Slots* result);
  absl::Status EmitStart(const LowerContext& context, Slots* result);
  // The start and the end of an asynchronous collective.
  absl::Status EmitStarted(const LowerContext& context, Slots* result);
  absl::Status EmitDone(const LowerContext& context, Slots* result);
  Step NewStep(const LowerContext& context) const;
  // Adds slots and shapes of leaves [first, first + count) to the step's results.
  absl::Status AddResults(const LowerContext& context, int first, int count, Step* step,
                          Slots* result);
  bool IsStarted(InstrId id) const { return !started_.empty() && started_[position_[id.value]]; }
  void FindLastUses();

  const Module& m_;
  const LowerOptions& options_;
  const Computation& comp_;
  const Liveness& live_;
  int64_t* inline_budget_;
  DeviceProgram* program_;
  ProgramComputation* out_;
  const int depth_;                  // of calls that were inlined to get here
  std::vector<Slots> slots_;         // by position in the computation
  std::vector<uint32_t>& position_;  // by id
  std::vector<bool> started_;        // by position, or empty; FindStarted
};

absl::Status ComputationLowering::Constant(const LowerContext& context, const Literal& literal,
                                           Slots* result) {
  // Nested literals need an explicit stack, since the input determines their depth.
  std::vector<const Literal*> stack = {&literal};
  while (!stack.empty()) {
    const Literal* l = stack.back();
    stack.pop_back();
    if (l->elided) {
      return context.Error("E311", "the constant's value is elided in the text, `{...}`",
                           "Dump with --xla_dump_large_constants, or have values made up: "
                           "--random-constants=SEED");
    }
    if (l->shape->IsTuple()) {
      for (size_t k = l->elements.size(); k-- > 0;) stack.push_back(l->elements[k]);
      continue;
    }
    const LeafShape shape = MakeLeafShape(*l->shape);
    if (!IsArrayType(shape.type)) {
      result->push_back(ConstantSlot(Tensor::Token()));
      continue;
    }
    if (static_cast<int64_t>(l->data.size()) !=
        shape.num_elements() * ElementTypeBytes(shape.type)) {
      return context.Error("E311", "the constant's data does not fill its shape");
    }
    Tensor value = Tensor::FromBytes(shape.type, shape.dims, l->data.data());
    NormalizeElements(shape.type, value.MutableData(), value.num_elements());
    result->push_back(ConstantSlot(std::move(value)));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ComputationLowering::Alias(const LowerContext& context, Slots* result) {
  const Instruction& i = context.instr;
  switch (i.opcode) {
    case Opcode::kTuple: *result = OperandSlots(i); return true;
    case Opcode::kGetTupleElement: {
      const Shape& tuple = *context.operand_shape(0);
      const int64_t index = i.as<TupleIndexAttrs>().index;
      if (!tuple.IsTuple() || index < 0 || index >= static_cast<int64_t>(tuple.tuple().size())) {
        return context.Error("E311", "the tuple has no such element");
      }
      int first = 0;
      for (int64_t k = 0; k < index; ++k) first += tuple.tuple()[k]->num_leaves();
      const Slots& s = slots(m_.operands(i)[0]);
      result->assign(s.begin() + first, s.begin() + first + i.shape->num_leaves());
      return true;
    }
    case Opcode::kCopy:
    case Opcode::kOptBarrier:
    case Opcode::kDomain:
    case Opcode::kAddDependency:
    case Opcode::kAsyncUpdate: *result = slots(m_.operands(i)[0]); return true;
    case Opcode::kAllReduceDone: *result = slots(m_.operands(i)[0]); return true;
    case Opcode::kCopyStart:  // (to, from, context)
      *result = slots(m_.operands(i)[0]);
      result->push_back((*result)[0]);
      result->push_back(ConstantSlot(Tensor::IntScalar(ElementType::kU32, 0)));
      return true;
    case Opcode::kCopyDone: *result = {slots(m_.operands(i)[0])[0]}; return true;
    case Opcode::kAllGatherDone:
    case Opcode::kCollectivePermuteDone:
    case Opcode::kAsyncDone: {  // element 1 of ((operands), results, extras..)
      const Shape& start = *context.operand_shape(0);
      if (!start.IsTuple() || start.tuple().size() < 2) return false;
      const Slots& s = slots(m_.operands(i)[0]);
      const int first = start.tuple()[0]->num_leaves();
      result->assign(s.begin() + first, s.begin() + first + start.tuple()[1]->num_leaves());
      return true;
    }
    case Opcode::kConstant:
      SHARDCALL_RETURN_IF_ERROR(Constant(context, *i.as<ConstantAttrs>().literal, result));
      return true;
    case Opcode::kAfterAll: *result = {ConstantSlot(Tensor::Token())}; return true;
    case Opcode::kCustomCall: {
      const KnownTarget target = KnownTargetOf(i);
      if (target == KnownTarget::kShardingGroup) {  // no result
        result->clear();
        return true;
      }
      if (HasTrait(target, kIsIdentity) && i.operand_count == 1) {
        *result = slots(m_.operands(i)[0]);
        return true;
      }
      return false;
    }
    default: return false;
  }
}

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
        return context.Error("E311", "the result is too large to be held");
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

}  // namespace

absl::Status LowerComputation(const Module& module, const LowerOptions& options, CompId comp,
                              const Liveness& live, std::vector<uint32_t>* position,
                              int64_t* inline_budget, DeviceProgram* program,
                              ProgramComputation* out) {
  return ComputationLowering(module, options, module.comp(comp), live, position, inline_budget,
                             program, out, 0)
      .Run();
}

}  // namespace shardcall::inline internal
