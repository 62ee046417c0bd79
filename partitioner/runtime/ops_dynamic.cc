// SPDX-License-Identifier: Apache-2.0
// set-dimension-size and dynamic-reshape where the sizes are those of the bounds:
// arrays here have no other size than the one their shape states.
#include <memory>

#include "absl/strings/str_cat.h"
#include "partitioner/runtime/lower_op.h"
#include "partitioner/runtime/step_run.h"

namespace shardcall {
namespace {

constexpr absl::string_view kWhy =
    "dynamic sizes below the bound cannot be executed; pad to the bound and mask";

absl::Status TooSmall(const StepRun& run, int64_t size, int64_t bound) {
  return run.Error("E310", absl::StrCat("the size is ", size, " of a bound of ", bound, ": ", kWhy),
                   absl::StatusCode::kUnimplemented);
}

struct SetSizeData : OpData {
  int64_t bound = 0;
};
absl::Status RunSetDimensionSize(StepRun& run) {
  const int64_t size = IntElement(run.in(1), 0), bound = run.data<SetSizeData>().bound;
  if (size != bound) return TooSmall(run, size, bound);
  run.Set(0, run.Take(0));
  return absl::OkStatus();
}

absl::Status RunDynamicReshape(StepRun& run) {
  const Dims& dims = run.shape(0).dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t size = IntElement(run.in(static_cast<int>(d) + 1), 0);
    if (size != dims[d]) return TooSmall(run, size, dims[d]);
  }
  run.Set(0, run.Take(0));
  return absl::OkStatus();
}

bool IsIntegerScalar(const Shape& shape) {
  return shape.IsArray() && shape.rank() == 0 && IsInteger(shape.element_type());
}

}  // namespace

absl::Status LowerSetDimensionSize(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<DimensionsAttrs>();
  const LeafShape& shape = step->shapes[0];
  const LeafShape in = MakeLeafShape(*context.operand_shape(0));
  if (attrs.dimensions.size() != 1 || attrs.dimensions[0] < 0 ||
      attrs.dimensions[0] >= static_cast<int64_t>(shape.dims.size()) || in.dims != shape.dims ||
      in.type != shape.type || !IsIntegerScalar(*context.operand_shape(1))) {
    return context.Error("E311", "the dimension and its size do not fit the operand");
  }
  auto data = std::make_unique<SetSizeData>();
  data->bound = shape.dims[attrs.dimensions[0]];
  step->fn = RunSetDimensionSize;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerDynamicReshape(const LowerContext& context, Step* step) {
  const LeafShape& shape = step->shapes[0];
  const LeafShape in = MakeLeafShape(*context.operand_shape(0));
  bool fits = context.num_operands() == static_cast<int>(shape.dims.size()) + 1 &&
              in.num_elements() == shape.num_elements() && in.type == shape.type;
  for (int k = 1; k < context.num_operands() && fits; ++k) {
    fits = IsIntegerScalar(*context.operand_shape(k));
  }
  if (!fits) return context.Error("E311", "one size per dimension of the result is needed");
  step->fn = RunDynamicReshape;
  return absl::OkStatus();
}

}  // namespace shardcall
