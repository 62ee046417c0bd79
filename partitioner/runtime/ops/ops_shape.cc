// SPDX-License-Identifier: Apache-2.0
// Data movement without arithmetic: broadcast, transpose, reverse, reshape, bitcast-convert, iota,
// and device ids.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/fuse/fusible.h"
#include "shardcall/partitioner/runtime/lanes/lane_kernel.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/strided.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status RunView(StepRun& run) {
  const auto& data = run.data<ViewData>();
  const Tensor& in = run.in(0);
  Tensor out = run.NewResult(0);
  CopyStrided(in.element_bytes(), out.dims(), in.data() + data.src_offset * in.element_bytes(),
              data.src_strides, out.MutableData(), RowMajorStrides(out.dims()));
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

absl::Status RunReshape(StepRun& run) {
  run.Set(0, run.Take(0));
  return absl::OkStatus();
}

// For types whose host elements differ in width from HLO's (s4, f4): packs bits, least significant
// first.
struct BitcastData : OpData {
  int from_bits = 0, to_bits = 0;
};
absl::Status RunPackedBitcast(StepRun& run) {
  const auto& data = run.data<BitcastData>();
  const Tensor& in = run.in(0);
  Tensor out = Tensor::Zeros(run.shape(0).type, run.shape(0).dims);
  const uint8_t* from = in.data<uint8_t>();
  uint8_t* to = out.MutableData<uint8_t>();
  const int from_bytes = in.element_bytes(), to_bytes = out.element_bytes();
  const int64_t bits = in.num_elements() * data.from_bits;
  for (int64_t bit = 0; bit < bits; ++bit) {
    const int64_t s = bit / data.from_bits, sb = bit % data.from_bits;
    const int64_t d = bit / data.to_bits, db = bit % data.to_bits;
    const int value = from[s * from_bytes + sb / 8] >> (sb % 8) & 1;
    to[d * to_bytes + db / 8] |= static_cast<uint8_t>(value << (db % 8));
  }
  NormalizeElements(out.type(), to, out.num_elements());
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

absl::Status RunBitcast(StepRun& run) {
  Tensor t = std::move(run.Take(0)).As(run.shape(0).type, run.shape(0).dims);
  if (t.type() == ElementType::kPred) {
    NormalizeElements(t.type(), t.MutableData(), t.num_elements());
  }
  run.Set(0, std::move(t));
  return absl::OkStatus();
}

absl::Status RunIota(StepRun& run) {
  const auto& data = run.data<IotaData>();
  Tensor out = run.NewResult(0);
  CopyStrided(out.element_bytes(), out.dims(), data.line.data(), data.strides, out.MutableData(),
              RowMajorStrides(out.dims()));
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

struct ScalarData : OpData {
  Tensor value;
};
absl::Status RunScalar(StepRun& run) {
  run.Set(0, run.data<ScalarData>().value);
  return absl::OkStatus();
}

absl::Status RunPartitionId(StepRun& run) {
  run.Set(0, Tensor::IntScalar(run.shape(0).type, run.device().device));
  return absl::OkStatus();
}
absl::Status RunReplicaId(StepRun& run) {  // there is one replica
  run.Set(0, Tensor::IntScalar(run.shape(0).type, 0));
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerBroadcast(const LowerContext& context, Step* step) {
  const Shape& in = *context.operand_shape(0);
  const auto& attrs = context.attrs<DimensionsAttrs>();
  auto data = std::make_unique<ViewData>();
  data->src_strides.assign(context.instr.shape->rank(), 0);
  const Dims strides = RowMajorStrides(in.dims());
  if (static_cast<int>(attrs.dimensions.size()) != in.rank()) {
    return context.Error("E311", "dimensions do not match the operand's rank");
  }
  for (int k = 0; k < in.rank(); ++k) {
    data->src_strides[attrs.dimensions[k]] = in.dim(k) == 1 ? 0 : strides[k];
  }
  step->fn = RunView;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerTranspose(const LowerContext& context, Step* step) {
  const Dims strides = RowMajorStrides(context.operand_shape(0)->dims());
  auto data = std::make_unique<ViewData>();
  for (int64_t d : context.attrs<DimensionsAttrs>().dimensions) {
    data->src_strides.push_back(strides[d]);
  }
  step->fn = RunView;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerReverse(const LowerContext& context, Step* step) {
  const Shape& in = *context.operand_shape(0);
  auto data = std::make_unique<ViewData>();
  data->src_strides = RowMajorStrides(in.dims());
  for (int64_t d : context.attrs<DimensionsAttrs>().dimensions) {
    data->src_offset += (in.dim(static_cast<int>(d)) - 1) * data->src_strides[d];
    data->src_strides[d] = -data->src_strides[d];
  }
  if (in.num_elements() == 0) data->src_offset = 0;
  step->fn = RunView;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerReshape(const LowerContext& context, Step* step) {
  const Shape& in = *context.operand_shape(0);
  const Shape& out = *context.instr.shape;
  if (in.num_elements() != out.num_elements() || in.element_type() != out.element_type()) {
    if (context.instr.opcode == Opcode::kBitcast) {
      return context.Unimplemented("a bitcast that changes the element type");
    }
    return context.Error("E311", "element counts differ");
  }
  if (context.instr.opcode == Opcode::kBitcast &&
      !(MakeLeafShape(in).HasDescendingLayout() && MakeLeafShape(out).HasDescendingLayout())) {
    return context.Unimplemented("a bitcast between layouts that are not descending");
  }
  step->fn = RunReshape;
  step->data = std::make_unique<SameBytesData>();
  return absl::OkStatus();
}

absl::Status LowerBitcastConvert(const LowerContext& context, Step* step) {
  const Shape& in = *context.operand_shape(0);
  const Shape& out = *context.instr.shape;
  const int from = ElementTypeBits(in.element_type()), to = ElementTypeBits(out.element_type());
  if (in.num_elements() * from != out.num_elements() * to) {
    return context.Error("E311", "the result has another number of bits");
  }
  step->fn = from % 8 == 0 && to % 8 == 0 ? RunBitcast : RunPackedBitcast;
  if (step->fn == RunPackedBitcast) {
    auto data = std::make_unique<BitcastData>();
    data->from_bits = from;
    data->to_bits = to;
    step->data = std::move(data);
  } else if (from == to && out.element_type() != ElementType::kPred) {
    step->data = std::make_unique<SameBytesData>();
  }
  return absl::OkStatus();
}

absl::Status LowerIota(const LowerContext& context, Step* step) {
  const LeafShape& shape = step->shapes[0];
  const int64_t d = context.attrs<IotaAttrs>().dimension;
  if (d < 0 || d >= static_cast<int64_t>(shape.dims.size())) {
    return context.Error("E311", "no such dimension");
  }
  const ElementType type[] = {ElementType::kS64};
  const LaneKernel convert = FindLaneKernel(Opcode::kConvert, nullptr, type, shape.type);
  if (!convert.valid()) return context.Unimplemented("an iota of this type");
  auto data = std::make_unique<IotaData>();
  data->line = Tensor(shape.type, {shape.dims[d]});
  constexpr int64_t kBlock = 4096;  // numbers at once, which take eight bytes each
  std::vector<int64_t> block(std::min(kBlock, shape.dims[d]));
  const void* in[] = {block.data()};
  for (int64_t at = 0; at < shape.dims[d]; at += kBlock) {
    std::iota(block.begin(), block.end(), at);
    convert.Run(in, data->line.MutableData() + at * data->line.element_bytes(),
                std::min(kBlock, shape.dims[d] - at));
  }
  data->strides.assign(shape.dims.size(), 0);
  data->strides[d] = 1;
  step->fn = RunIota;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerDeviceId(const LowerContext& context, Step* step) {
  step->fn = context.instr.opcode == Opcode::kPartitionId ? RunPartitionId : RunReplicaId;
  return absl::OkStatus();
}

// Arrays here have static shapes, so a dynamic dimension has the size of its bound.
absl::Status LowerGetDimensionSize(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<DimensionsAttrs>();
  const Shape& in = *context.operand_shape(0);
  if (attrs.dimensions.size() != 1 || attrs.dimensions[0] < 0 || attrs.dimensions[0] >= in.rank()) {
    return context.Error("E311", "the operand has no such dimension");
  }
  auto data = std::make_unique<ScalarData>();
  data->value =
      Tensor::IntScalar(step->shapes[0].type, in.dim(static_cast<int>(attrs.dimensions[0])));
  step->fn = RunScalar;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
