// SPDX-License-Identifier: Apache-2.0
// Parts of arrays: slice, pad, concatenate, dynamic-slice and
// dynamic-update-slice.
#include <algorithm>
#include <memory>

#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

struct SliceData : OpData {
  int64_t offset = 0;
  Dims strides;
};
absl::Status RunSlice(StepRun& run) {
  const auto& data = run.data<SliceData>();
  const Tensor& in = run.in(0);
  Tensor out = run.NewResult(0);
  CopyStrided(in.element_bytes(), out.dims(), in.data() + data.offset * in.element_bytes(),
              data.strides, out.MutableData(), RowMajorStrides(out.dims()));
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

// The part of the operand that is in the result, and its place.
struct PadData : OpData {
  Dims dims, src_strides, dst_strides;
  int64_t src_offset = 0, dst_offset = 0;
};
absl::Status RunPad(StepRun& run) {
  const auto& data = run.data<PadData>();
  const Tensor& in = run.in(0);
  const int bytes = in.element_bytes();
  Tensor out = run.NewResult(0);
  FillElements(bytes, run.in(1).data(), out.MutableData(), out.num_elements());
  CopyStrided(bytes, data.dims, in.data() + data.src_offset * bytes, data.src_strides,
              out.MutableData() + data.dst_offset * bytes, data.dst_strides);
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

struct ConcatenateData : OpData {
  int dimension = 0;
};
absl::Status RunConcatenate(StepRun& run) {
  const int d = run.data<ConcatenateData>().dimension;
  if (run.num_inputs() == 1) {
    run.Set(0, run.Take(0));
    return absl::OkStatus();
  }
  Tensor out = run.NewResult(0);
  const Dims strides = RowMajorStrides(out.dims());
  char* to = out.MutableData();
  for (int k = 0; k < run.num_inputs(); ++k) {
    const Tensor& in = run.in(k);
    CopyStrided(in.element_bytes(), in.dims(), in.data(), RowMajorStrides(in.dims()), to, strides);
    to += in.dim(d) * strides[d] * in.element_bytes();
  }
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

struct DynamicData : OpData {
  bool vector_index = false;  // one rank-1 index operand rather than scalars
};

// The first element of the window, with start indices clamped so that it fits.
int64_t ClampedOffset(const StepRun& run, int first_index, bool vector_index,
                      absl::Span<const int64_t> dims, absl::Span<const int64_t> window) {
  const Dims strides = RowMajorStrides(dims);
  int64_t offset = 0;
  for (size_t k = 0; k < dims.size(); ++k) {
    const Tensor& t = run.in(first_index + (vector_index ? 0 : static_cast<int>(k)));
    int64_t start = IntElement(t, vector_index ? static_cast<int64_t>(k) : 0);
    if (t.type() == ElementType::kU64 && start < 0) start = INT64_MAX;
    offset += std::clamp<int64_t>(start, 0, std::max<int64_t>(0, dims[k] - window[k])) * strides[k];
  }
  return offset;
}

absl::Status RunDynamicSlice(StepRun& run) {
  const Tensor& in = run.in(0);
  Tensor out = run.NewResult(0);
  if (out.num_elements() > 0) {
    const int64_t offset =
        ClampedOffset(run, 1, run.data<DynamicData>().vector_index, in.dims(), out.dims());
    CopyStrided(in.element_bytes(), out.dims(), in.data() + offset * in.element_bytes(),
                RowMajorStrides(in.dims()), out.MutableData(), RowMajorStrides(out.dims()));
  }
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

absl::Status RunDynamicUpdateSlice(StepRun& run) {
  const Tensor update = run.in(1);
  const int64_t offset =
      ClampedOffset(run, 2, run.data<DynamicData>().vector_index, run.shape(0).dims, update.dims());
  Tensor out = run.Take(0);
  if (update.num_elements() > 0) {
    char* to = out.MutableData() + offset * out.element_bytes();
    CopyStrided(out.element_bytes(), update.dims(), update.data(), RowMajorStrides(update.dims()),
                to, RowMajorStrides(out.dims()));
  }
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

absl::Status CheckIndices(const LowerContext& context, int first, int rank, DynamicData* data) {
  const int count = context.num_operands() - first;
  data->vector_index = count == 1 && context.operand_shape(first)->rank() == 1;
  if (data->vector_index ? context.operand_shape(first)->dim(0) != rank : count != rank) {
    return context.Error("E311", "one start index per dimension is needed");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerSlice(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<SliceAttrs>();
  auto data = std::make_unique<SliceData>();
  const Dims strides = RowMajorStrides(context.operand_shape(0)->dims());
  for (size_t k = 0; k < attrs.starts.size(); ++k) {
    data->offset += attrs.starts[k] * strides[k];
    data->strides.push_back(strides[k] * attrs.strides[k]);
  }
  step->fn = RunSlice;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerPad(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<PadAttrs>();
  const Shape& in = *context.operand_shape(0);
  auto data = std::make_unique<PadData>();
  const Dims src = RowMajorStrides(in.dims());
  const Dims dst = RowMajorStrides(step->shapes[0].dims);
  for (int k = 0; k < in.rank(); ++k) {
    // Element i goes to low + i * step; negative padding cuts elements off.
    const int64_t low = attrs.low[k], stride = attrs.interior[k] + 1;
    const int64_t size = step->shapes[0].dims[k];
    const int64_t first = low >= 0 ? 0 : (-low + stride - 1) / stride;
    const int64_t room = size - (low + first * stride);  // elements from the first one on
    int64_t count = room <= 0 ? 0 : (room + stride - 1) / stride;
    count = std::min(count, in.dim(k) - first);
    data->dims.push_back(std::max<int64_t>(0, count));
    data->src_strides.push_back(src[k]);
    data->dst_strides.push_back(dst[k] * stride);
    data->src_offset += first * src[k];
    data->dst_offset += (low + first * stride) * dst[k];
  }
  if (Product(data->dims) == 0) data->src_offset = data->dst_offset = 0;
  step->fn = RunPad;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerConcatenate(const LowerContext& context, Step* step) {
  auto data = std::make_unique<ConcatenateData>();
  data->dimension = static_cast<int>(context.attrs<DimensionsAttrs>().dimensions[0]);
  step->fn = RunConcatenate;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerDynamicSlice(const LowerContext& context, Step* step) {
  auto data = std::make_unique<DynamicData>();
  SHARDCALL_RETURN_IF_ERROR(CheckIndices(context, 1, context.operand_shape(0)->rank(), data.get()));
  step->fn = RunDynamicSlice;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerDynamicUpdateSlice(const LowerContext& context, Step* step) {
  auto data = std::make_unique<DynamicData>();
  SHARDCALL_RETURN_IF_ERROR(CheckIndices(context, 2, context.operand_shape(0)->rank(), data.get()));
  step->fn = RunDynamicUpdateSlice;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
