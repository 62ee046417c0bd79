// SPDX-License-Identifier: Apache-2.0
// scaled-dot: a product of operands with a scale per block. It runs as the equivalent ops: each
// operand as f32, each scale broadcast over its blocks, their products (exact for narrow floats),
// and a dot. A scalar scale means that the operand has no scale.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shardcall/partitioner/ir/build/checked_builder.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"

namespace shardcall {
inline namespace internal {
namespace {

using Id = absl::StatusOr<InstrId>;

// f32[2,32] from a scale f32[2,2]: broadcast to [2,1,2,16], then reshaped.
Id Spread(CheckedBuilder& b, InstrId scale, absl::Span<const int64_t> dims) {
  const Dims own(b.shape(scale)->dims().begin(), b.shape(scale)->dims().end());
  Dims split, mapped;
  for (size_t d = 0; d < own.size(); ++d) {
    mapped.push_back(static_cast<int64_t>(split.size()));
    split.push_back(own[d]);
    split.push_back(dims[d] / own[d]);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId spread, b.Broadcast(scale, split, mapped));
  return b.Reshape(spread, dims);
}

Id Scaled(CheckedBuilder& b, InstrId x, InstrId scale) {
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId wide, b.Convert(x, ElementType::kF32));
  if (b.shape(scale)->rank() == 0 && b.shape(x)->rank() != 0) return wide;
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId factor, b.Convert(scale, ElementType::kF32));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId factors, Spread(b, factor, b.shape(x)->dims()));
  return b.Add(Opcode::kMultiply, {wide, factors});
}

struct ScaledDotData : OpData {
  std::shared_ptr<const DeviceProgram> program;
};

absl::Status RunScaledDot(StepRun& run) {
  const DeviceProgram& program = *run.data<ScaledDotData>().program;
  std::vector<Tensor> arguments;
  for (int k = 0; k < 4; ++k) arguments.push_back(run.Take(k));
  SHARDCALL_ASSIGN_OR_RETURN(
      std::vector<Tensor> results,
      RunComputation(program, run.device(), program.entry, std::move(arguments)));
  run.Set(0, std::move(results[0]));
  return absl::OkStatus();
}

Id Build(CheckedBuilder& b, const LowerContext& context, ElementType type) {
  std::vector<InstrId> x;
  for (int k = 0; k < 4; ++k) {
    const Shape& shape = *context.operand_shape(k);
    SHARDCALL_ASSIGN_OR_RETURN(
        const InstrId p, b.Parameter(k, b.context().MakeArray(shape.element_type(), shape.dims())));
    x.push_back(p);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId lhs, Scaled(b, x[0], x[2]));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId rhs, Scaled(b, x[1], x[3]));
  const auto& from = context.attrs<DotAttrs>();
  DotAttrs attrs;
  attrs.lhs_batch = from.lhs_batch;
  attrs.rhs_batch = from.rhs_batch;
  attrs.lhs_contracting = from.lhs_contracting;
  attrs.rhs_contracting = from.rhs_contracting;
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId product, b.Dot(lhs, rhs, attrs));
  return b.Convert(product, type);
}

}  // namespace

absl::Status LowerScaledDot(const LowerContext& context, Step* step) {
  if (context.num_operands() != 4) {
    return context.Error("E311", "two operands and their scales are needed");
  }
  for (int k = 0; k < 4; ++k) {
    const Shape& shape = *context.operand_shape(k);
    if (!shape.IsArray() || !IsFloat(shape.element_type()) ||
        shape.element_type() == ElementType::kF64) {
      return context.Unimplemented("an operand of this element type");
    }
  }
  for (int k = 0; k < 2; ++k) {
    const Shape &x = *context.operand_shape(k), &scale = *context.operand_shape(k + 2);
    bool fits = scale.rank() == 0 || scale.rank() == x.rank();
    for (int d = 0; fits && d < scale.rank(); ++d) {
      fits = scale.dim(d) > 0 && x.dim(d) % scale.dim(d) == 0;
    }
    if (!fits) return context.Error("E311", "a scale does not divide what it scales into blocks");
  }
  if (!IsFloat(step->shapes[0].type)) return context.Unimplemented("a result of this type");
  Module module(std::make_shared<Context>());
  module.header.name = "scaled_dot";
  MonoidTable monoids(&module);
  CheckedBuilder builder(&module, module.AddComputation("scaled_dot"), &monoids);
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId root, Build(builder, context, step->shapes[0].type));
  SHARDCALL_RETURN_IF_ERROR(builder.SetRoot(root));
  module.set_entry(builder.computation());
  auto data = std::make_unique<ScaledDotData>();
  SHARDCALL_ASSIGN_OR_RETURN(data->program, Lower(module));
  const LeafShape& made = data->program->results[0];
  if (made.dims != step->shapes[0].dims) {
    return context.Error("E311", "the result's shape does not follow from the operands");
  }
  step->fn = RunScaledDot;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
