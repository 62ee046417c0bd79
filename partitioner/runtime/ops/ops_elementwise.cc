// SPDX-License-Identifier: Apache-2.0
// Elementwise instructions: one lane kernel over whole arrays, in place if an operand is not used
// later.
#include <memory>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/fuse/fusible.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/strided.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status RunElementwise(StepRun& run) {
  const auto& data = run.data<ElementwiseData>();
  const LaneKernel& kernel = data.kernel;
  const int64_t n = run.shape(0).num_elements();
  Tensor spread[3];
  const void* in[3];
  for (int k = 0; k < kernel.arity; ++k) {
    const Tensor& t = run.in(k);
    if (data.spread[k]) {
      spread[k] = Tensor(t.type(), run.shape(0).dims);
      FillElements(t.element_bytes(), t.data(), spread[k].MutableData(), n);
      in[k] = spread[k].data();
    } else {
      in[k] = t.data();
    }
  }
  // The operand buffers stay alive: a reused one becomes the result.
  Tensor out = run.ReuseOrNew(0, absl::MakeConstSpan({0, 1, 2}).first(kernel.arity));
  kernel.Run(in, out.MutableData(), n);
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerElementwise(const LowerContext& context, Step* step) {
  absl::InlinedVector<ElementType, 3> types;
  auto data = std::make_unique<ElementwiseData>();
  const Shape& result = *context.instr.shape;
  for (int k = 0; k < context.num_operands(); ++k) {
    const Shape& shape = *context.operand_shape(k);
    types.push_back(shape.element_type());
    if (!shape.IsArray() || k >= 3) return context.Unimplemented("this operand");
    if (shape.num_elements() != result.num_elements()) {
      if (shape.rank() != 0) return context.Error("E311", "operands differ in shape");
      data->spread[k] = true;
    }
  }
  data->kernel =
      FindLaneKernel(context.instr.opcode, context.instr.attrs, types, result.element_type());
  if (!data->kernel.valid()) {
    return context.Unimplemented(
        absl::StrCat("this opcode on ", types.empty() ? "nothing" : ElementTypeName(types[0])));
  }
  for (ElementType& type : types) {
    if (type == ElementType::kBF16) type = ElementType::kF32;
  }
  data->wide = FindLaneKernel(
      context.instr.opcode, context.instr.attrs, types,
      result.element_type() == ElementType::kBF16 ? ElementType::kF32 : result.element_type());
  step->fn = RunElementwise;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
