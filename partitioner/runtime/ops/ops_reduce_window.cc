// SPDX-License-Identifier: Apache-2.0
// reduce-window. A window that covers everything up to its position (cumulative sums and the like)
// is a scan. For other windows each window element is visited, on a row of lanes over the trailing
// dimensions without a window.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lanes/reduce_extreme.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/ops/lane_program.h"
#include "shardcall/partitioner/runtime/ops/window.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

struct ReduceWindowData : OpData {
  LaneProgram program;
  WindowDims window;
  int lane_from = 0;  // dimensions from here on have no window
  // For scans: the one dimension with a window, and its direction; -1: not a scan.
  int scan_dim = -1;
  bool scan_reverse = false;
  bool widen = false;           // float sums are computed in f64
  WindowTapsFn taps = nullptr;  // kernel for whole windows of f32
};

void Convert(ElementType from, const void* in, ElementType to, void* out, int64_t n) {
  const ElementType types[] = {from};
  const void* operands[] = {in};
  FindLaneKernel(Opcode::kConvert, nullptr, types, to).Run(operands, out, n);
}

Tensor ConvertTo(const Tensor& t, ElementType type) {
  Tensor out(type, t.dims());
  Convert(t.type(), t.data(), type, out.MutableData(), t.num_elements());
  return out;
}

// acc = body(acc, x[i]) along the first of [extent, lanes], each kept.
class RowScan {
 public:
  RowScan(const ReduceWindowData& data, ElementType type, const Tensor& init, int64_t lanes)
      : data_(data),
        type_(type),
        bytes_(init.element_bytes()),
        runner_(data.program, lanes),
        start_(type, {lanes}) {
    FillElements(bytes_, init.data(), start_.MutableData(), lanes);
    if (!data.widen) return;
    wide_ = Tensor(ElementType::kF64, {lanes});
    sum_ = Tensor(ElementType::kF64, {lanes});
  }
  void Run(const char* in, char* out, int64_t extent, int64_t lanes) {
    const int64_t row = lanes * bytes_;
    if (data_.widen) Convert(type_, start_.data(), ElementType::kF64, sum_.MutableData(), lanes);
    const char* previous = start_.data();
    for (int64_t step = 0; step < extent; ++step) {
      const int64_t r = data_.scan_reverse ? extent - 1 - step : step;
      const char* x = in + r * row;
      char* to = out + r * row;
      if (data_.widen) {
        Convert(type_, x, ElementType::kF64, wide_.MutableData(), lanes);
        const void* params[] = {sum_.data(), wide_.data()};
        void* results[] = {sum_.MutableData()};
        runner_.Run(params, results, lanes);
        Convert(ElementType::kF64, sum_.data(), type_, to, lanes);
      } else {
        const void* params[] = {previous, x};
        void* results[] = {to};
        runner_.Run(params, results, lanes);
        previous = to;
      }
    }
  }

 private:
  const ReduceWindowData& data_;
  const ElementType type_;
  const int64_t bytes_;
  LaneRunner runner_;
  Tensor start_, wide_, sum_;
};

// One dimension is scanned, the others are lanes: those after it, and if these are few, some of
// those before it, which a copy moves behind.
void Scan(const ReduceWindowData& data, const Tensor& in, const Tensor& init, Tensor& out) {
  constexpr int64_t kFewLanes = 32, kLanes = 64;
  const int d = data.scan_dim;
  const int64_t extent = in.dims()[d];
  const int64_t outer = Product(absl::MakeConstSpan(in.dims()).first(d));
  const int64_t inner = Product(absl::MakeConstSpan(in.dims()).subspan(d + 1));
  if (outer * inner * extent == 0) return;
  const int bytes = in.element_bytes();
  const int64_t line = extent * inner;
  const int64_t lines = inner < kFewLanes ? std::min(outer, kLanes / inner) : 1;
  RowScan scan(data, in.type(), init, lines * inner);
  Tensor rows, scanned;
  if (lines > 1) {
    rows = Tensor(in.type(), {extent, lines, inner});
    scanned = Tensor(in.type(), {extent, lines, inner});
  }
  for (int64_t a = 0; a < outer; a += lines) {
    const char* from = in.data() + a * line * bytes;
    char* to = out.MutableData() + a * line * bytes;
    if (lines == 1) {
      scan.Run(from, to, extent, inner);
      continue;
    }
    const int64_t n = std::min(lines, outer - a);
    const int64_t whole[] = {line, inner, 1}, apart[] = {inner, n * inner, 1};
    const int64_t counts[] = {n, extent, inner};
    CopyStrided(bytes, counts, from, whole, rows.MutableData(), apart);
    scan.Run(rows.data(), scanned.MutableData(), extent, n * inner);
    CopyStrided(bytes, counts, scanned.data(), apart, to, whole);
  }
}

void Visit(const ReduceWindowData& data, const std::vector<Tensor>& in,
           const std::vector<Tensor>& init, std::vector<Tensor>& out) {
  const size_t count = in.size();
  const int rank = data.lane_from;
  const Dims& in_dims = in[0].dims();
  const int64_t lanes = Product(absl::MakeConstSpan(in_dims).subspan(rank));
  if (lanes == 0) return;
  const Dims strides = RowMajorStrides(in_dims);
  LaneRunner runner(data.program, lanes);
  std::vector<const void*> params(2 * count);
  std::vector<void*> results(count);
  int64_t position = 0;
  for (IndexCounter o(absl::MakeConstSpan(out[0].dims()).first(rank)); !o.done(); o.Next()) {
    for (size_t k = 0; k < count; ++k) {
      results[k] = out[k].MutableData() + position * lanes * out[k].element_bytes();
      params[k] = results[k];
      FillElements(out[k].element_bytes(), init[k].data(), static_cast<char*>(results[k]), lanes);
    }
    ++position;
    for (IndexCounter w(absl::MakeConstSpan(data.window.size).first(rank)); !w.done(); w.Next()) {
      int64_t offset = 0;
      bool inside = true;
      for (int k = 0; k < rank && inside; ++k) {
        const int64_t i = data.window.BaseIndex(k, o.index()[k], w.index()[k], in_dims[k]);
        inside = i >= 0;
        offset += i * strides[k];
      }
      if (!inside) continue;
      for (size_t k = 0; k < count; ++k) {
        params[count + k] = in[k].data() + offset * in[k].element_bytes();
      }
      runner.Run(params.data(), results.data(), lanes);
    }
  }
}

// One f32 array and an op with a kernel for whole windows.
absl::Status RunTaps(StepRun& run) {
  const auto& data = run.data<ReduceWindowData>();
  const Tensor in = run.in(0);
  const float init = *run.in(1).data<float>();
  Tensor out = run.NewResult(0);
  const int rank = data.lane_from;
  const auto in_dims = absl::MakeConstSpan(in.dims());
  const auto out_dims = absl::MakeConstSpan(out.dims()).first(rank);
  const auto size = absl::MakeConstSpan(data.window.size).first(rank);
  const int64_t lanes = Product(in_dims.subspan(rank));
  const WindowIndices indices(data.window, out_dims, in_dims.first(rank));
  const Dims strides = RowMajorStrides(in_dims);
  std::vector<const float*> taps(Product(size));
  float* to = out.MutableData<float>();
  for (IndexCounter o(out_dims); !o.done() && lanes > 0; o.Next(), to += lanes) {
    int64_t count = 0;
    for (IndexCounter w(size); !w.done(); w.Next()) {
      int64_t offset = 0;
      for (int k = 0; k < rank && offset >= 0; ++k) {
        const int64_t i = indices.at(k, o.index()[k], w.index()[k]);
        offset = i < 0 ? -1 : offset + i * strides[k];
      }
      if (offset >= 0) taps[count++] = in.data<float>() + offset;
    }
    data.taps(taps.data(), count, init, to, lanes);
  }
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

absl::Status RunReduceWindow(StepRun& run) {
  const auto& data = run.data<ReduceWindowData>();
  const int count = run.num_results();
  std::vector<Tensor> in, init, out;
  for (int k = 0; k < count; ++k) {
    in.push_back(run.in(k));
    init.push_back(run.in(count + k));
    out.push_back(run.NewResult(k));
  }
  if (data.scan_dim >= 0) {
    Scan(data, in[0], init[0], out[0]);
    run.Set(0, std::move(out[0]));
    return absl::OkStatus();
  }
  if (data.widen) {
    in[0] = ConvertTo(in[0], ElementType::kF64);
    init[0] = ConvertTo(init[0], ElementType::kF64);
    out[0] = Tensor(ElementType::kF64, out[0].dims());
  }
  Visit(data, in, init, out);
  if (data.widen) out[0] = ConvertTo(out[0], run.shape(0).type);
  for (int k = 0; k < count; ++k) run.Set(k, std::move(out[k]));
  return absl::OkStatus();
}

// Whether the window at o covers exactly elements 0..o, or o..n-1.
bool IsScan(const WindowDims& w, int k, int64_t extent, int64_t result_extent, bool* reverse) {
  if (w.stride[k] != 1 || w.base_dilation[k] != 1 || w.window_dilation[k] != 1 ||
      result_extent != extent || w.size[k] < extent) {
    return false;
  }
  *reverse = w.pad_low[k] == 0;
  return w.pad_low[k] == w.size[k] - 1 || *reverse;
}

// Whether the tables of RunTaps are small, and windows are visited forwards.
bool FewIndices(const WindowDims& window, const Dims& out) {
  constexpr int64_t kMostIndices = 1 << 20, kMostTaps = 1 << 12;
  int64_t indices = 0, taps = 1;
  for (int k = 0; k < window.rank(); ++k) {
    if (window.reversed[k] || window.size[k] > kMostTaps / taps ||
        out[k] > kMostIndices / window.size[k]) {
      return false;
    }
    taps *= window.size[k];
    indices += out[k] * window.size[k];
  }
  return indices <= kMostIndices;
}

}  // namespace

absl::Status LowerReduceWindow(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<ReduceWindowAttrs>();
  const int count = context.num_operands() / 2;
  auto data = std::make_unique<ReduceWindowData>();
  SHARDCALL_ASSIGN_OR_RETURN(data->program, CompileLanes(context.module, attrs.to_apply));
  if (data->program.num_parameters != 2 * count ||
      static_cast<int>(data->program.results.size()) != count ||
      static_cast<int>(step->results.size()) != count) {
    return context.Error("E311", "the computation does not fit the operands");
  }
  data->window = WindowDims(attrs.window);
  const Shape& in = *context.operand_shape(0);
  const Dims& out = step->shapes[0].dims;
  if (data->window.rank() != in.rank()) {
    return context.Error("E311", "the window has another rank than the operand");
  }
  int touched = 0, last = -1;
  data->lane_from = 0;
  for (int k = 0; k < in.rank(); ++k) {
    if (data->window.Trivial(k)) continue;
    ++touched;
    last = k;
    data->lane_from = k + 1;
  }
  bool reverse = false;
  // Without a monoid, a scan may differ from the result of separate windows.
  if (touched == 1 && count == 1 && data->program.monoid &&
      IsScan(data->window, last, in.dim(last), out[last], &reverse)) {
    data->scan_dim = last;
    data->scan_reverse = reverse;
  }
  const ElementType type = in.element_type();
  data->widen = count == 1 && data->program.monoid == PartialOp::kSum && IsFloat(type) &&
                type != ElementType::kF64 && step->shapes[0].type == type;
  if (data->widen) {
    const ElementType types[] = {ElementType::kF64, ElementType::kF64};
    for (ElementType& r : data->program.registers) r = ElementType::kF64;
    data->program.ops[0].kernel = FindLaneKernel(Opcode::kAdd, nullptr, types, ElementType::kF64);
  }
  step->fn = RunReduceWindow;
  if (data->scan_dim < 0 && count == 1 && data->program.monoid && type == ElementType::kF32 &&
      step->shapes[0].type == type && FewIndices(data->window, out)) {
    data->taps = FindWindowTaps(*data->program.monoid);
    if (data->taps != nullptr) step->fn = RunTaps;
  }
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
