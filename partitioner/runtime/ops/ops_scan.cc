// SPDX-License-Identifier: Apache-2.0
// scan: a computation that takes one slice of each input along one dimension and the carries, and
// returns one slice of each output and the next carries.
#include <memory>
#include <utility>
#include <vector>

#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

struct ScanData : OpData {
  int computation = -1;
  int dimension = 0;
  int inputs = 0, outputs = 0;
  int64_t length = 0;
  bool reverse = false;
};

// Slice `i` of `whole` along dimension d to or from `slice`, which lacks d.
void CopySlice(const Dims& whole, int d, int64_t i, int bytes, const char* from, char* to,
               bool into_whole) {
  Dims slice = whole;
  slice.erase(slice.begin() + d);
  Dims strides = RowMajorStrides(whole);
  const int64_t offset = i * strides[d] * bytes;
  strides.erase(strides.begin() + d);
  const Dims dense = RowMajorStrides(slice);
  if (into_whole) {
    CopyStrided(bytes, slice, from, dense, to + offset, strides);
  } else {
    CopyStrided(bytes, slice, from + offset, strides, to, dense);
  }
}

absl::Status RunScan(StepRun& run) {
  const auto& data = run.data<ScanData>();
  std::vector<Tensor> carries, outputs;
  for (int k = data.inputs; k < run.num_inputs(); ++k) carries.push_back(run.Take(k));
  for (int k = 0; k < data.outputs; ++k) outputs.push_back(run.NewResult(k));
  for (int64_t step = 0; step < data.length; ++step) {
    const int64_t i = data.reverse ? data.length - 1 - step : step;
    std::vector<Tensor> arguments;
    for (int k = 0; k < data.inputs; ++k) {
      const Tensor& input = run.in(k);
      Dims dims = input.dims();
      dims.erase(dims.begin() + data.dimension);
      Tensor slice(input.type(), dims);
      CopySlice(input.dims(), data.dimension, i, input.element_bytes(), input.data(),
                slice.MutableData(), false);
      arguments.push_back(std::move(slice));
    }
    for (Tensor& carry : carries) arguments.push_back(std::move(carry));
    SHARDCALL_ASSIGN_OR_RETURN(std::vector<Tensor> made,
                               run.Call(data.computation, std::move(arguments)));
    for (int k = 0; k < data.outputs; ++k) {
      CopySlice(outputs[k].dims(), data.dimension, i, outputs[k].element_bytes(), made[k].data(),
                outputs[k].MutableData(), true);
    }
    for (size_t k = 0; k < carries.size(); ++k) carries[k] = std::move(made[data.outputs + k]);
  }
  for (int k = 0; k < data.outputs; ++k) run.Set(k, std::move(outputs[k]));
  for (size_t k = 0; k < carries.size(); ++k) {
    run.Set(data.outputs + static_cast<int>(k), std::move(carries[k]));
  }
  return absl::OkStatus();
}

bool SameArray(const LeafShape& a, const LeafShape& b) {
  return a.type == b.type && a.dims == b.dims;
}

}  // namespace

absl::Status LowerScan(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<ScanAttrs>();
  auto data = std::make_unique<ScanData>();
  const int carries = static_cast<int>(attrs.num_carries);
  data->inputs = context.num_operands() - carries;
  data->outputs = static_cast<int>(step->results.size()) - carries;
  data->dimension = static_cast<int>(attrs.dimension);
  data->reverse = attrs.is_reverse;
  if (!attrs.to_apply.valid()) return context.Error("E311", "the called computation is missing");
  const Computation& body = context.module.comp(attrs.to_apply);
  const Shape& root = *context.module.instr(body.root).shape;
  bool fits = carries >= 0 && data->inputs >= 1 && data->outputs >= 0 &&
              static_cast<int>(body.parameters.size()) == context.num_operands() &&
              root.num_leaves() == static_cast<int>(step->results.size());
  for (int k = 0; k < context.num_operands() && fits; ++k) {
    const Shape& shape = *context.operand_shape(k);
    const Shape& parameter = *context.module.instr(body.parameters[k]).shape;
    fits = shape.IsArray() && parameter.IsArray();
    if (!fits) break;
    LeafShape expected = MakeLeafShape(shape);
    if (k < data->inputs) {
      fits = data->dimension >= 0 && data->dimension < shape.rank();
      if (!fits) break;
      const int64_t length = shape.dim(data->dimension);
      fits = k == 0 || length == data->length;
      data->length = length;
      expected.dims.erase(expected.dims.begin() + data->dimension);
    }
    fits = fits && SameArray(expected, MakeLeafShape(parameter));
  }
  for (size_t k = 0; k < step->results.size() && fits; ++k) {
    LeafShape made = MakeLeafShape(*root.leaf(static_cast<int>(k)));
    if (static_cast<int>(k) < data->outputs) {
      fits = data->dimension <= static_cast<int>(made.dims.size());
      if (fits) made.dims.insert(made.dims.begin() + data->dimension, data->length);
    } else {
      const int operand = data->inputs + static_cast<int>(k) - data->outputs;
      fits = SameArray(made, MakeLeafShape(*context.operand_shape(operand)));
    }
    fits = fits && SameArray(made, step->shapes[k]);
  }
  if (!fits) return context.Error("E311", "the computation does not fit the operands and results");
  data->computation = context.computation(attrs.to_apply);
  step->fn = RunScan;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
