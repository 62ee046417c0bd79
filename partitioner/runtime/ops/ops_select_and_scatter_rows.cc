// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "shardcall/partitioner/runtime/ops/select_and_scatter.h"
#include "shardcall/partitioner/runtime/strided.h"

namespace shardcall {
inline namespace internal {
namespace {

// Updates, per lane, the value chosen so far and the index of its element.
void TakeWhereNotKept(const uint8_t* keep, const float* values, int32_t element, float* best,
                      int32_t* chosen, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float value = values[i], old_value = best[i];
    const int32_t old_element = chosen[i];
    best[i] = keep[i] != 0 ? old_value : value;
    chosen[i] = keep[i] != 0 ? old_element : element;
  }
}

}  // namespace

bool IsRowSelectAndScatter(const SelectAndScatterData& data, const LeafShape& result,
                           absl::Span<const int64_t> source_dims) {
  const int last = static_cast<int>(result.dims.size()) - 1;
  int64_t row_starts = 1;
  for (int k = 0; k < last; ++k) row_starts *= result.dims[k];
  return last >= 0 && result.type == ElementType::kF32 && data.window.Trivial(last) &&
         source_dims[last] == result.dims[last] && row_starts < INT32_MAX &&
         data.select.ops.size() == 1 && data.select.results[0] == data.select.ops[0].out &&
         data.select.registers[0] == result.type && data.scatter.registers[1] == result.type;
}

absl::Status RunRowSelectAndScatter(StepRun& run) {
  const auto& data = run.data<SelectAndScatterData>();
  const Tensor& operand = run.in(0);
  const Tensor& source = run.in(1);
  Tensor out = run.NewResult(0);
  FillElements(4, run.in(2).data(), out.MutableData(), out.num_elements());
  const int last = operand.rank() - 1;
  const int64_t lanes = operand.dim(last);
  const float* values = operand.data<float>();
  float* to = out.MutableData<float>();
  const Dims rows(operand.dims().begin(), operand.dims().begin() + last);
  const Dims strides = RowMajorStrides(rows);  // in rows
  const Dims window(data.window.size.begin(), data.window.size.begin() + last);
  const absl::Span<const int64_t> outer = absl::MakeConstSpan(source.dims()).first(last);
  LaneRunner select(data.select, std::max<int64_t>(lanes, 1)), scatter(data.scatter, 1);
  std::vector<uint8_t> keep(lanes);
  std::vector<float> best(lanes);
  std::vector<int32_t> chosen(lanes);
  const float* from = source.data<float>();
  const bool adds = data.scatter.monoid == PartialOp::kSum;
  for (IndexCounter o(outer); lanes > 0 && !o.done(); o.Next(), from += lanes) {
    bool any = false;
    for (IndexCounter w(window); !w.done(); w.Next()) {
      int64_t row = 0;
      bool inside = true;
      for (int k = 0; k < last && inside; ++k) {
        const int64_t i = data.window.BaseIndex(k, o.index()[k], w.index()[k], rows[k]);
        inside = i >= 0;
        row += i * strides[k];
      }
      if (!inside) continue;
      const float* candidates = values + row * lanes;
      if (!any) {
        any = true;
        std::memcpy(best.data(), candidates, lanes * sizeof(float));
        std::fill(chosen.begin(), chosen.end(), static_cast<int32_t>(row));
        continue;
      }
      const void* params[] = {best.data(), candidates};
      void* results[] = {keep.data()};
      select.Run(params, results, lanes);
      TakeWhereNotKept(keep.data(), candidates, static_cast<int32_t>(row), best.data(),
                       chosen.data(), lanes);
    }
    if (!any) continue;
    for (int64_t i = 0; i < lanes; ++i) {
      float* target = to + chosen[i] * lanes + i;
      if (adds) {
        *target += from[i];
        continue;
      }
      const void* params[] = {target, from + i};
      void* results[] = {target};
      scatter.Run(params, results, 1);
    }
  }
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
