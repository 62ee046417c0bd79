// SPDX-License-Identifier: Apache-2.0
// gather and scatter. Gather clamps a window that is out of bounds; scatter skips it entirely.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/ops/index_map.h"
#include "shardcall/partitioner/runtime/ops/lane_program.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

struct GatherData : OpData {
  IndexMap map;
};

int64_t Dot(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  int64_t sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

absl::Status RunGather(StepRun& run) {
  const IndexMap& map = run.data<GatherData>().map;
  const Tensor& operand = run.in(0);
  const Tensor& indices = run.in(1);
  Tensor out = run.NewResult(0);
  char* to = out.MutableData();
  const int bytes = operand.element_bytes();
  const Dims strides = RowMajorStrides(operand.dims());
  Dims start(operand.rank(), 0);
  if (out.num_elements() > 0) {
    for (IndexCounter b(map.batch_dims); !b.done(); b.Next()) {
      map.Start(indices, b.index(), &start);
      int64_t from = 0;
      for (int k = 0; k < operand.rank(); ++k) {
        from += std::clamp<int64_t>(start[k], 0, operand.dim(k) - map.window[k]) * strides[k];
      }
      const int64_t at = Dot(b.index(), map.batch_window_strides);
      if (map.outer_dims.empty()) {
        std::memcpy(to + at * bytes, operand.data() + from * bytes, map.run * bytes);
      } else {
        CopyStrided(bytes, map.window_dims, operand.data() + from * bytes,
                    map.window_operand_strides, to + at * bytes, map.window_array_strides);
      }
    }
  }
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

struct ScatterData : OpData {
  IndexMap map;
  LaneProgram program;
};

absl::Status RunScatter(StepRun& run) {
  const auto& data = run.data<ScatterData>();
  const IndexMap& map = data.map;
  const int count = run.num_results();
  const Tensor indices = run.in(count);
  std::vector<Tensor> out, updates;
  for (int k = 0; k < count; ++k) updates.push_back(run.in(count + 1 + k));
  std::vector<char*> to;
  for (int k = 0; k < count; ++k) {
    out.push_back(run.Take(k));
    to.push_back(out[k].MutableData());
  }
  const Dims strides = RowMajorStrides(map.operand_dims);
  const int rank = static_cast<int>(map.operand_dims.size());
  Dims start(rank, 0);
  LaneRunner runner(data.program, std::max<int64_t>(1, map.run));
  std::vector<const void*> params(2 * count);
  std::vector<void*> results(count);
  if (updates[0].num_elements() > 0) {
    for (IndexCounter b(map.batch_dims); !b.done(); b.Next()) {
      map.Start(indices, b.index(), &start);
      bool inside = true;
      for (int k = 0; k < rank; ++k) {
        inside = inside && start[k] >= 0 && start[k] <= map.operand_dims[k] - map.window[k];
      }
      if (!inside) continue;
      const int64_t base = Dot(start, strides);
      const int64_t update = Dot(b.index(), map.batch_window_strides);
      for (IndexCounter w(map.outer_dims); !w.done(); w.Next()) {
        const int64_t target = base + Dot(w.index(), map.outer_operand_strides);
        const int64_t source = update + Dot(w.index(), map.outer_array_strides);
        for (int k = 0; k < count; ++k) {
          const int bytes = out[k].element_bytes();
          results[k] = to[k] + target * bytes;
          params[k] = results[k];
          params[count + k] = updates[k].data() + source * updates[k].element_bytes();
        }
        runner.Run(params.data(), results.data(), map.run);
      }
    }
  }
  for (int k = 0; k < count; ++k) run.Set(k, std::move(out[k]));
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerGather(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<GatherAttrs>();
  const Shape& operand = *context.operand_shape(0);
  for (int k = 0; k < operand.rank() && k < static_cast<int>(attrs.slice_sizes.size()); ++k) {
    if (attrs.slice_sizes[k] > operand.dim(k)) {
      return context.Error("E311", "a slice is larger than its operand");
    }
  }
  auto data = std::make_unique<GatherData>();
  SHARDCALL_RETURN_IF_ERROR(MakeIndexMap(context,
                                         {.operand = &operand,
                                          .indices = context.operand_shape(1),
                                          .array = context.instr.shape,
                                          .window_dims_of_array = attrs.offset_dims,
                                          .dropped = attrs.collapsed_slice_dims,
                                          .index_to_operand = attrs.start_index_map,
                                          .operand_batching = attrs.operand_batching_dims,
                                          .indices_batching = attrs.start_indices_batching_dims,
                                          .index_vector_dim = attrs.index_vector_dim,
                                          .window = ToDims(attrs.slice_sizes)},
                                         &data->map));
  step->fn = RunGather;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerScatter(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<ScatterAttrs>();
  const int count = (context.num_operands() - 1) / 2;
  const Shape& operand = *context.operand_shape(0);
  const Shape& updates = *context.operand_shape(count + 1);
  auto data = std::make_unique<ScatterData>();
  SHARDCALL_ASSIGN_OR_RETURN(data->program, CompileLanes(context.module, attrs.to_apply));
  if (data->program.num_parameters != 2 * count ||
      static_cast<int>(data->program.results.size()) != count) {
    return context.Error("E311", "the computation does not fit the operands");
  }
  for (int k = 0; k < count; ++k) {
    if (data->program.result_type(k) != context.operand_shape(k)->element_type()) {
      return context.Unimplemented("a scatter whose computation has other types than its operands");
    }
  }
  // Window extents come from the updates.
  Dims window(operand.rank(), 1);
  size_t next = 0;
  auto dropped = [](Ints dims, int64_t k) {
    return std::find(dims.begin(), dims.end(), k) != dims.end();
  };
  for (int k = 0; k < operand.rank(); ++k) {
    if (dropped(attrs.inserted_window_dims, k) || dropped(attrs.input_batching_dims, k)) continue;
    if (next >= attrs.update_window_dims.size()) {
      return context.Error("E311", "too few window dimensions");
    }
    window[k] = updates.dim(static_cast<int>(attrs.update_window_dims[next++]));
  }
  SHARDCALL_RETURN_IF_ERROR(MakeIndexMap(context,
                                         {.operand = &operand,
                                          .indices = context.operand_shape(count),
                                          .array = &updates,
                                          .window_dims_of_array = attrs.update_window_dims,
                                          .dropped = attrs.inserted_window_dims,
                                          .index_to_operand = attrs.scatter_dims_to_operand_dims,
                                          .operand_batching = attrs.input_batching_dims,
                                          .indices_batching = attrs.scatter_indices_batching_dims,
                                          .index_vector_dim = attrs.index_vector_dim,
                                          .window = window},
                                         &data->map));
  step->fn = RunScatter;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
