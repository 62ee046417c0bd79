// SPDX-License-Identifier: Apache-2.0
// fft over the trailing dimensions.
#include <memory>
#include <utility>

#include "shardcall/kernels/host/fft.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"

namespace shardcall {
inline namespace internal {
namespace {

struct FftData : OpData {
  FftKind kind = FftKind::kForward;
  int rank = 1;
};

FftKind KindOf(FftType type) {
  switch (type) {
    case FftType::kFft: return FftKind::kForward;
    case FftType::kIfft: return FftKind::kInverse;
    case FftType::kRfft: return FftKind::kRealForward;
    case FftType::kIrfft: break;
  }
  return FftKind::kRealInverse;
}

absl::Status RunStep(StepRun& run) {
  const auto& data = run.data<FftData>();
  const Tensor& in = run.in(0);
  Tensor out = run.NewResult(0);
  const FftShape shape = {data.kind, data.rank, in.type(), out.type(), in.dims(), out.dims()};
  RunFft(shape, in.data(), out.MutableData());
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerFft(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<FftAttrs>();
  const Shape& in = *context.operand_shape(0);
  const LeafShape& out = step->shapes[0];
  auto data = std::make_unique<FftData>();
  data->kind = KindOf(attrs.type);
  data->rank = static_cast<int>(attrs.length.size());
  const FftShape shape = {data->kind, data->rank, in.element_type(), out.type, in.dims(), out.dims};
  const Dims lengths = ToDims(attrs.length);
  if (const char* wrong = CheckFft(shape, lengths); wrong != nullptr) {
    return context.Error("E311", wrong);
  }
  step->fn = RunStep;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
