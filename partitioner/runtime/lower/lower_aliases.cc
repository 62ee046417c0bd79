// SPDX-License-Identifier: Apache-2.0
// Ops whose results are slots that exist already, or constants.
#include <utility>
#include <vector>

#include "shardcall/partitioner/ir/analysis/output_aliasing.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/row_by_opcode.h"
#include "shardcall/partitioner/runtime/lower/computation_lowering.h"
#include "shardcall/partitioner/runtime/lower/lower_table.h"

namespace shardcall {
inline namespace internal {

absl::StatusOr<bool> ComputationLowering::Constant(const LowerContext& context, Slots* result) {
  // Nested literals need an explicit stack, since the input determines their depth.
  std::vector<const Literal*> stack = {context.instr.as<ConstantAttrs>().literal};
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
  return true;
}

namespace {

// Whether the estimate of a device's memory (api/device_memory.h) knows of the ops that lower to
// aliases. Constants are held by the program.
constexpr bool AliasesHaveTheTrait() {
  for (int k = 0; k < kNumOpcodes; ++k) {
    const auto op = static_cast<Opcode>(k);
    if (kOpcodeNames[k].lower != "Alias" || op == Opcode::kConstant) continue;
    if ((kOpcodeNames[k].traits & (kAliases | kFree)) == 0) return false;
  }
  return true;
}
static_assert(AliasesHaveTheTrait());

}  // namespace

absl::StatusOr<bool> ComputationLowering::Alias(const LowerContext& context, Slots* result) {
  static constexpr AliasRow kRows[] = {
      {Opcode::kTuple, &ComputationLowering::AllOperands},
      {Opcode::kGetTupleElement, &ComputationLowering::TupleElement},
      {Opcode::kCopy, &ComputationLowering::AllOperands},
      {Opcode::kOptBarrier, &ComputationLowering::AllOperands},
      {Opcode::kDomain, &ComputationLowering::FirstOperand},
      {Opcode::kAddDependency, &ComputationLowering::FirstOperand},
      {Opcode::kAsyncUpdate, &ComputationLowering::FirstOperand},
      {Opcode::kAllReduceDone, &ComputationLowering::FirstOperand},
      {Opcode::kCopyStart, &ComputationLowering::CopyStart},
      {Opcode::kCopyDone, &ComputationLowering::CopyDone},
      {Opcode::kAllGatherDone, &ComputationLowering::ResultsOfStart},
      {Opcode::kCollectivePermuteDone, &ComputationLowering::ResultsOfStart},
      {Opcode::kAsyncDone, &ComputationLowering::ResultsOfStart},
      {Opcode::kConstant, &ComputationLowering::Constant},
      {Opcode::kAfterAll, &ComputationLowering::Token},
      {Opcode::kCustomCall, &ComputationLowering::KnownCall},
  };
  static_assert(HasRowPerOp(kRows, &OpcodeNames::lower, "Alias"));
  const AliasRow* const row = RowByOpcode(kRows, context.instr.opcode);
  if (row == nullptr) return false;
  return (this->*row->alias)(context, result);
}

absl::StatusOr<bool> ComputationLowering::AllOperands(const LowerContext& context, Slots* result) {
  *result = OperandSlots(context.instr);
  return true;
}

absl::StatusOr<bool> ComputationLowering::FirstOperand(const LowerContext& context, Slots* result) {
  *result = slots(m_.operands(context.instr)[0]);
  return true;
}

absl::StatusOr<bool> ComputationLowering::TupleElement(const LowerContext& context, Slots* result) {
  const Instruction& i = context.instr;
  const Shape& tuple = *context.operand_shape(0);
  const int64_t index = i.as<TupleIndexAttrs>().index;
  if (!tuple.IsTuple() || index < 0 || index >= static_cast<int64_t>(tuple.tuple().size())) {
    return context.Error("E311", "the tuple has no such element");
  }
  const auto first = slots(m_.operands(i)[0]).begin() + FirstLeafAt(&tuple, {index});
  result->assign(first, first + i.shape->num_leaves());
  return true;
}

// (to, from, context).
absl::StatusOr<bool> ComputationLowering::CopyStart(const LowerContext& context, Slots* result) {
  *result = slots(m_.operands(context.instr)[0]);
  result->push_back((*result)[0]);
  result->push_back(ConstantSlot(Tensor::IntScalar(ElementType::kU32, 0)));
  return true;
}

absl::StatusOr<bool> ComputationLowering::CopyDone(const LowerContext& context, Slots* result) {
  *result = {slots(m_.operands(context.instr)[0])[0]};
  return true;
}

// Element 1 of ((operands), results, extras..).
absl::StatusOr<bool> ComputationLowering::ResultsOfStart(const LowerContext& context,
                                                         Slots* result) {
  const Shape& start = *context.operand_shape(0);
  if (!start.IsTuple() || start.tuple().size() < 2) return false;
  const auto first = slots(m_.operands(context.instr)[0]).begin() + FirstLeafAt(&start, {1});
  result->assign(first, first + start.tuple()[1]->num_leaves());
  return true;
}

absl::StatusOr<bool> ComputationLowering::Token(const LowerContext&, Slots* result) {
  *result = {ConstantSlot(Tensor::Token())};
  return true;
}

absl::StatusOr<bool> ComputationLowering::KnownCall(const LowerContext& context, Slots* result) {
  const KnownTarget target = KnownTargetOf(context.instr);
  // Without a result. Steps run in the order of the program, so that no other order is needed.
  if (target == KnownTarget::kShardingGroup || HasTrait(target, kOrders)) {
    result->clear();
    return true;
  }
  if (!HasTrait(target, kIsIdentity) || context.instr.operand_count != 1) return false;
  return FirstOperand(context, result);
}

}  // namespace internal
}  // namespace shardcall
