// SPDX-License-Identifier: Apache-2.0
// reduce and map: any computation, any number of inputs.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/fuse/fusible.h"
#include "shardcall/partitioner/runtime/lanes/reduce_kernels.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/ops/lane_program.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

struct FastReduceData : MonoidReduceData {
  ReduceFn fast = nullptr;
};
struct ReduceData : OpData {
  LaneProgram program;
  Dims perm;  // empty: the operand can be read in place
  int64_t extent = 1, inner = 1;
};

absl::Status RunFastReduce(StepRun& run) {
  const auto& data = run.data<FastReduceData>();
  const Tensor in = data.perm.empty() ? run.in(0) : Transpose(run.in(0), data.perm);
  Tensor out = run.NewResult(0);
  data.fast(in.type(), in.data(), run.in(1).data(), out.MutableData(), data.outer, data.extent,
            data.inner);
  run.Set(0, std::move(out));
  return absl::OkStatus();
}

// Inputs are read as [extent, inner]; the computation runs on a row of lanes.
absl::Status RunReduce(StepRun& run) {
  const auto& data = run.data<ReduceData>();
  const int count = run.num_results();
  std::vector<Tensor> in(count), acc(count);
  for (int k = 0; k < count; ++k) {
    in[k] = data.perm.empty() ? run.in(k) : Transpose(run.in(k), data.perm);
    acc[k] = run.NewResult(k);
    FillElements(acc[k].element_bytes(), run.in(count + k).data(), acc[k].MutableData(),
                 data.inner);
  }
  const int64_t lanes = std::min<int64_t>(data.inner, 256);
  if (lanes > 0) {
    LaneRunner runner(data.program, lanes);
    std::vector<const void*> params(2 * count);
    std::vector<void*> results(count);
    for (int64_t b = 0; b < data.inner; b += lanes) {
      const int64_t n = std::min(lanes, data.inner - b);
      for (int k = 0; k < count; ++k) {
        results[k] = acc[k].MutableData() + b * acc[k].element_bytes();
        params[k] = results[k];
      }
      for (int64_t r = 0; r < data.extent; ++r) {
        for (int k = 0; k < count; ++k) {
          params[count + k] = in[k].data() + (r * data.inner + b) * in[k].element_bytes();
        }
        runner.Run(params.data(), results.data(), n);
      }
    }
  }
  for (int k = 0; k < count; ++k) run.Set(k, std::move(acc[k]));
  return absl::OkStatus();
}

struct MapData : OpData {
  LaneProgram program;
};
absl::Status RunMap(StepRun& run) {
  const auto& data = run.data<MapData>();
  const int64_t total = run.shape(0).num_elements();
  const int64_t lanes = std::min<int64_t>(total, 1024);
  std::vector<Tensor> out;
  for (int k = 0; k < run.num_results(); ++k) out.push_back(run.NewResult(k));
  if (total > 0) {
    LaneRunner runner(data.program, lanes);
    std::vector<const void*> params(run.num_inputs());
    std::vector<void*> results(out.size());
    for (int64_t i = 0; i < total; i += lanes) {
      for (size_t k = 0; k < params.size(); ++k) {
        params[k] =
            run.in(static_cast<int>(k)).data() + i * run.in(static_cast<int>(k)).element_bytes();
      }
      for (size_t k = 0; k < out.size(); ++k) {
        results[k] = out[k].MutableData() + i * out[k].element_bytes();
      }
      runner.Run(params.data(), results.data(), std::min(lanes, total - i));
    }
  }
  for (size_t k = 0; k < out.size(); ++k) run.Set(static_cast<int>(k), std::move(out[k]));
  return absl::OkStatus();
}

bool Reduced(Ints dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

// Reads the operand as [outer, extent, inner] if its reduced dimensions are adjacent; false if they
// are not.
bool Flatten(const Shape& in, Ints reduced, MonoidReduceData* data) {
  int stage = 0;  // 0 outer, 1 extent, 2 inner
  for (int d = 0; d < in.rank(); ++d) {
    if (in.dim(d) == 1) continue;
    const bool is_reduced = Reduced(reduced, d);
    if (is_reduced && stage == 2) return false;
    if (is_reduced) stage = 1;
    if (!is_reduced && stage == 1) stage = 2;
    (stage == 0 ? data->outer : stage == 1 ? data->extent : data->inner) *= in.dim(d);
  }
  return true;
}

}  // namespace

absl::Status LowerReduce(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<ReduceAttrs>();
  const int count = context.num_operands() / 2;
  const Shape& in = *context.operand_shape(0);
  auto data = std::make_unique<ReduceData>();
  SHARDCALL_ASSIGN_OR_RETURN(data->program, CompileLanes(context.module, attrs.to_apply));
  if (data->program.num_parameters != 2 * count ||
      static_cast<int>(data->program.results.size()) != count ||
      static_cast<int>(step->results.size()) != count) {
    return context.Error("E311", "the computation does not fit the operands");
  }
  for (int k = 0; k < count; ++k) {
    // The accumulator must have the computation's type throughout.
    if (data->program.result_type(k) != step->shapes[k].type ||
        data->program.registers[k] != step->shapes[k].type ||
        context.operand_shape(count + k)->element_type() != step->shapes[k].type ||
        data->program.registers[count + k] != context.operand_shape(k)->element_type()) {
      return context.Unimplemented(
          "a reduction whose computation has other types than its operands");
    }
  }
  Dims kept, reduced;
  for (int d = 0; d < in.rank(); ++d) (Reduced(attrs.dimensions, d) ? reduced : kept).push_back(d);
  auto fast = std::make_unique<FastReduceData>();
  const bool lies_as_read = Flatten(in, attrs.dimensions, fast.get());
  fast->type = step->shapes[0].type;
  if (count == 1 && data->program.monoid && in.element_type() == fast->type) {
    fast->monoid = *data->program.monoid;
    fast->fast = FindReduceFn(fast->monoid, fast->type);
  }
  if (fast->fast != nullptr) {
    if (!lies_as_read) {
      fast->outer = fast->extent = fast->inner = 1;
      fast->perm = kept;
      fast->perm.insert(fast->perm.end(), reduced.begin(), reduced.end());
      for (int64_t d : kept) fast->outer *= in.dim(static_cast<int>(d));
      for (int64_t d : reduced) fast->extent *= in.dim(static_cast<int>(d));
    }
    step->fn = RunFastReduce;
    step->data = std::move(fast);
    return absl::OkStatus();
  }
  if (!lies_as_read || fast->outer != 1) {
    data->perm = reduced;
    data->perm.insert(data->perm.end(), kept.begin(), kept.end());
  }
  for (int64_t d : kept) data->inner *= in.dim(static_cast<int>(d));
  for (int64_t d : reduced) data->extent *= in.dim(static_cast<int>(d));
  step->fn = RunReduce;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerMap(const LowerContext& context, Step* step) {
  auto data = std::make_unique<MapData>();
  SHARDCALL_ASSIGN_OR_RETURN(data->program,
                             CompileLanes(context.module, context.attrs<ReduceAttrs>().to_apply));
  if (data->program.num_parameters != context.num_operands() ||
      data->program.results.size() != step->results.size()) {
    return context.Error("E311", "the computation does not fit the operands");
  }
  step->fn = RunMap;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
