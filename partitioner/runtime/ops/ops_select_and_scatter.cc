// SPDX-License-Identifier: Apache-2.0
// select-and-scatter: for each window, the source element is scattered to the operand element that
// `select` chooses.
#include <memory>
#include <utility>

#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/ops/lane_program.h"
#include "shardcall/partitioner/runtime/ops/select_and_scatter.h"
#include "shardcall/partitioner/runtime/ops/window.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status RunSelectAndScatter(StepRun& run) {
  const auto& data = run.data<SelectAndScatterData>();
  const Tensor& operand = run.in(0);
  const Tensor& source = run.in(1);
  const int bytes = operand.element_bytes();
  const int source_bytes = source.element_bytes();
  Tensor out = run.NewResult(0);
  FillElements(bytes, run.in(2).data(), out.MutableData(), out.num_elements());
  char* to = out.MutableData();
  const Dims strides = RowMajorStrides(operand.dims());
  LaneRunner select(data.select, 1), scatter(data.scatter, 1);
  int64_t position = 0;
  for (IndexCounter o(source.dims()); !o.done(); o.Next(), ++position) {
    int64_t chosen = -1;
    for (IndexCounter w(data.window.size); !w.done(); w.Next()) {
      int64_t offset = 0;
      bool inside = true;
      for (int k = 0; k < operand.rank() && inside; ++k) {
        const int64_t i = data.window.BaseIndex(k, o.index()[k], w.index()[k], operand.dim(k));
        inside = i >= 0;
        offset += i * strides[k];
      }
      if (!inside) continue;
      if (chosen < 0) {
        chosen = offset;
        continue;
      }
      uint8_t keep = 0;
      const void* params[] = {operand.data() + chosen * bytes, operand.data() + offset * bytes};
      void* results[] = {&keep};
      select.Run(params, results, 1);
      if (!keep) chosen = offset;
    }
    if (chosen < 0) continue;
    const void* params[] = {to + chosen * bytes, source.data() + position * source_bytes};
    void* results[] = {to + chosen * bytes};
    scatter.Run(params, results, 1);
  }
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerSelectAndScatter(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<SelectAndScatterAttrs>();
  auto data = std::make_unique<SelectAndScatterData>();
  SHARDCALL_ASSIGN_OR_RETURN(data->select, CompileLanes(context.module, attrs.select));
  SHARDCALL_ASSIGN_OR_RETURN(data->scatter, CompileLanes(context.module, attrs.scatter));
  data->window = WindowDims(attrs.window);
  if (data->select.num_parameters != 2 || data->scatter.num_parameters != 2 ||
      data->select.results.size() != 1 || data->scatter.results.size() != 1 ||
      data->select.result_type(0) != ElementType::kPred ||
      data->scatter.result_type(0) != step->shapes[0].type ||
      data->window.rank() != context.operand_shape(0)->rank()) {
    return context.Error("E311", "the computations do not fit the operands");
  }
  const bool rows = IsRowSelectAndScatter(*data, step->shapes[0], context.operand_shape(1)->dims());
  step->fn = rows ? RunRowSelectAndScatter : RunSelectAndScatter;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
