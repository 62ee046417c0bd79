// SPDX-License-Identifier: Apache-2.0
// while, conditional, call. Loop-carried values are moved from iteration to iteration, so that a
// body can update them in place.
#include <memory>
#include <utility>
#include <vector>

#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

std::vector<Tensor> TakeAll(StepRun& run, int first = 0) {
  std::vector<Tensor> values;
  for (int k = first; k < run.num_inputs(); ++k) values.push_back(run.Take(k));
  return values;
}

absl::Status SetAll(StepRun& run, std::vector<Tensor> values) {
  for (size_t k = 0; k < values.size(); ++k) run.Set(static_cast<int>(k), std::move(values[k]));
  return absl::OkStatus();
}

struct WhileData : OpData {
  int condition = -1, body = -1;
};
absl::Status RunWhile(StepRun& run) {
  const auto& data = run.data<WhileData>();
  std::vector<Tensor> carry = TakeAll(run);
  while (true) {
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Tensor> go_on, run.Call(data.condition, carry));
    if (IntElement(go_on[0], 0) == 0) break;
    SHARDCALL_ASSIGN_OR_RETURN(carry, run.Call(data.body, std::move(carry)));
  }
  return SetAll(run, std::move(carry));
}

struct ConditionalData : OpData {
  bool is_pred = false;
  struct Branch {
    int computation = -1, first = 0, count = 0;  // operand leaves
  };
  std::vector<Branch> branches;
};
absl::Status RunConditional(StepRun& run) {
  const auto& data = run.data<ConditionalData>();
  const int64_t n = static_cast<int64_t>(data.branches.size());
  int64_t index = IntElement(run.in(0), 0);
  if (data.is_pred) {
    index = index != 0 ? 0 : 1;  // the true computation comes first
  } else if (index < 0 || index >= n) {
    index = n - 1;
  }
  const auto& branch = data.branches[index];
  std::vector<Tensor> arguments;
  for (int k = 0; k < branch.count; ++k) arguments.push_back(run.Take(branch.first + k));
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                             run.Call(branch.computation, std::move(arguments)));
  return SetAll(run, std::move(results));
}

struct CallData : OpData {
  int computation = -1;
};
absl::Status RunCall(StepRun& run) {
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                             run.Call(run.data<CallData>().computation, TakeAll(run)));
  return SetAll(run, std::move(results));
}

using Leaves = std::vector<const Shape*>;

void Append(const Shape& shape, Leaves* leaves) {
  for (int k = 0; k < shape.num_leaves(); ++k) leaves->push_back(shape.leaf(k));
}
Leaves LeavesOf(const Module& m, absl::Span<const InstrId> ids) {
  Leaves leaves;
  for (InstrId id : ids) Append(*m.instr(id).shape, &leaves);
  return leaves;
}
bool SameLeaves(const Leaves& a, const Leaves& b) {
  if (a.size() != b.size()) return false;
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k]->element_type() != b[k]->element_type() || a[k]->dims() != b[k]->dims()) return false;
  }
  return true;
}

// Checks that the computation takes `operands` and returns `results`.
absl::Status CheckSignature(const LowerContext& context, CompId comp, const Leaves& operands,
                            const Leaves& results) {
  if (!comp.valid()) return context.Error("E311", "the called computation is missing");
  const Computation& c = context.module.comp(comp);
  const InstrId root[] = {c.root};
  if (!SameLeaves(LeavesOf(context.module, c.parameters), operands) ||
      !SameLeaves(LeavesOf(context.module, root), results)) {
    return context.Error("E311", "the called computation does not fit the operands and results");
  }
  return absl::OkStatus();
}

// The leaves that this step sets: all of the instruction's, or element 1 of an async-start's.
Leaves ResultLeaves(const LowerContext& context) {
  Leaves leaves;
  const Shape& shape = *context.instr.shape;
  Append(context.instr.opcode == Opcode::kAsyncStart ? *shape.tuple()[1] : shape, &leaves);
  return leaves;
}

}  // namespace

absl::Status LowerWhile(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<WhileAttrs>();
  const Leaves carry = LeavesOf(context.module, context.module.operands(context.instr));
  SHARDCALL_RETURN_IF_ERROR(CheckSignature(context, attrs.body, carry, ResultLeaves(context)));
  if (!attrs.condition.valid()) return context.Error("E311", "the condition is missing");
  const Computation& condition = context.module.comp(attrs.condition);
  const Shape& decision = *context.module.instr(condition.root).shape;
  if (!SameLeaves(LeavesOf(context.module, condition.parameters), carry) ||
      decision.element_type() != ElementType::kPred || decision.rank() != 0) {
    return context.Error("E311", "the condition does not fit the operand");
  }
  auto data = std::make_unique<WhileData>();
  data->condition = context.computation(attrs.condition);
  data->body = context.computation(attrs.body);
  step->fn = RunWhile;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerConditional(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<ConditionalAttrs>();
  auto data = std::make_unique<ConditionalData>();
  data->is_pred = attrs.is_pred;
  if (static_cast<int>(attrs.branches.size()) + 1 != context.num_operands() ||
      attrs.branches.empty() || (attrs.is_pred && attrs.branches.size() != 2)) {
    return context.Error("E311", "one operand per branch is needed");
  }
  int first = 1;
  for (size_t b = 0; b < attrs.branches.size(); ++b) {
    Leaves operands;
    Append(*context.operand_shape(static_cast<int>(b) + 1), &operands);
    const int count = static_cast<int>(operands.size());
    SHARDCALL_RETURN_IF_ERROR(
        CheckSignature(context, attrs.branches[b], operands, ResultLeaves(context)));
    data->branches.push_back({context.computation(attrs.branches[b]), first, count});
    first += count;
  }
  step->fn = RunConditional;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerCall(const LowerContext& context, Step* step) {
  const auto callees = CalledComputations(context.module, context.instr);
  if (callees.size() != 1) return context.Unimplemented("a call of other than one computation");
  SHARDCALL_RETURN_IF_ERROR(CheckSignature(
      context, callees[0], LeavesOf(context.module, context.module.operands(context.instr)),
      ResultLeaves(context)));
  auto data = std::make_unique<CallData>();
  data->computation = context.computation(callees[0]);
  step->fn = RunCall;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
