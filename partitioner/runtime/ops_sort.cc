// SPDX-License-Identifier: Apache-2.0
// sort and topk. Lines are sorted by their indices with a merge sort, so equal
// elements keep their order and a comparator that is no order does no harm.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "partitioner/runtime/lane_program.h"
#include "partitioner/runtime/lower_op.h"
#include "kernels/host/sort_keys.h"
#include "partitioner/runtime/step_run.h"
#include "partitioner/runtime/strided.h"
#include "sharding/status.h"

namespace shardcall {
namespace {

struct SortData : OpData {
  LaneProgram comparator;
  int dimension = 0;
  int key_operand = -1;  // comparator is p(2k) < p(2k+1) or >, by total order
  bool descending = false;
};

// Bottom-up; `before(a, b)` is true if element a must precede b.
template <typename Before>
void MergeSort(std::vector<int64_t>& order, std::vector<int64_t>& scratch, Before before) {
  const int64_t n = static_cast<int64_t>(order.size());
  scratch.resize(n);
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t low = 0; low < n; low += 2 * width) {
      const int64_t middle = std::min(low + width, n), high = std::min(low + 2 * width, n);
      int64_t a = low, b = middle, to = low;
      while (a < middle && b < high) {
        scratch[to++] = before(order[b], order[a]) ? order[b++] : order[a++];
      }
      while (a < middle) scratch[to++] = order[a++];
      while (b < high) scratch[to++] = order[b++];
    }
    order.swap(scratch);
  }
}

absl::Status RunSort(StepRun& run) {
  const auto& data = run.data<SortData>();
  const int count = run.num_inputs();
  const Dims& dims = run.shape(0).dims;
  const int64_t extent = dims[data.dimension];
  const int64_t inner = Product(absl::MakeConstSpan(dims).subspan(data.dimension + 1));
  const int64_t lines = extent == 0 ? 0 : run.shape(0).num_elements() / extent;
  std::vector<Tensor> out;
  for (int k = 0; k < count; ++k) out.push_back(run.NewResult(k));
  LaneRunner runner(data.comparator, 1);
  std::vector<const void*> params(2 * count);
  std::vector<std::vector<char>> line(count);
  for (int k = 0; k < count; ++k) line[k].resize(extent * out[k].element_bytes());
  std::vector<int64_t> order(extent), scratch, keys;
  for (int64_t l = 0; l < lines; ++l) {
    const int64_t first = l / inner * extent * inner + l % inner;
    const int64_t n[] = {extent}, src[] = {inner}, dst[] = {1};
    for (int k = 0; k < count; ++k) {
      const int bytes = out[k].element_bytes();
      CopyStrided(bytes, n, run.in(k).data() + first * bytes, src, line[k].data(), dst);
    }
    std::iota(order.begin(), order.end(), 0);
    if (data.key_operand >= 0) {
      OrderKeys(run.in(data.key_operand).type(), line[data.key_operand].data(), extent, &keys);
      if (data.descending) {
        std::stable_sort(order.begin(), order.end(),
                         [&](int64_t a, int64_t b) { return keys[a] > keys[b]; });
      } else {
        std::stable_sort(order.begin(), order.end(),
                         [&](int64_t a, int64_t b) { return keys[a] < keys[b]; });
      }
    } else {
      MergeSort(order, scratch, [&](int64_t a, int64_t b) {
        for (int k = 0; k < count; ++k) {
          const int bytes = out[k].element_bytes();
          params[2 * k] = line[k].data() + a * bytes;
          params[2 * k + 1] = line[k].data() + b * bytes;
        }
        uint8_t result = 0;
        void* results[] = {&result};
        runner.Run(params.data(), results, 1);
        return result != 0;
      });
    }
    for (int k = 0; k < count; ++k) {
      const int bytes = out[k].element_bytes();
      char* to = out[k].MutableData() + first * bytes;
      for (int64_t i = 0; i < extent; ++i) {
        std::memcpy(to + i * inner * bytes, line[k].data() + order[i] * bytes, bytes);
      }
    }
  }
  for (int k = 0; k < count; ++k) run.Set(k, std::move(out[k]));
  return absl::OkStatus();
}

struct TopKData : OpData {
  bool largest = true;
};
absl::Status RunTopK(StepRun& run) {
  const bool largest = run.data<TopKData>().largest;
  const Tensor& in = run.in(0);
  const int64_t extent = in.dims().back(), k = run.shape(0).dims.back();
  const int64_t lines = extent == 0 ? 0 : in.num_elements() / extent;
  const int bytes = in.element_bytes();
  Tensor values = run.NewResult(0), indices = run.NewResult(1);
  std::vector<int64_t> order(extent), keys;
  for (int64_t l = 0; l < lines; ++l) {
    const char* from = in.data() + l * extent * bytes;
    OrderKeys(in.type(), from, extent, &keys);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
      if (keys[a] != keys[b]) return largest ? keys[a] > keys[b] : keys[a] < keys[b];
      return a < b;
    });
    for (int64_t i = 0; i < k; ++i) {
      std::memcpy(values.MutableData() + (l * k + i) * bytes, from + order[i] * bytes, bytes);
      indices.MutableData<int32_t>()[l * k + i] = static_cast<int32_t>(order[i]);
    }
  }
  run.Set(0, std::move(values));
  run.Set(1, std::move(indices));
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerSort(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<SortAttrs>();
  auto data = std::make_unique<SortData>();
  data->dimension = static_cast<int>(attrs.dimension);
  SHARDCALL_ASSIGN_OR_RETURN(data->comparator, CompileLanes(context.module, attrs.to_apply));
  const LaneProgram& program = data->comparator;
  if (program.num_parameters != 2 * context.num_operands() || program.results.size() != 1 ||
      program.result_type(0) != ElementType::kPred ||
      data->dimension >= context.operand_shape(0)->rank()) {
    return context.Error("E311", "the comparator does not fit the operands");
  }
  // p(2k) < p(2k+1), p(2k) > p(2k+1), and the same with sides exchanged.
  if (program.ops.size() == 1) {
    for (InstrId id : context.module.comp(attrs.to_apply).instructions) {
      const Instruction& i = context.module.instr(id);
      if (i.opcode != Opcode::kCompare) continue;
      const auto& compare = i.as<CompareAttrs>();
      const int a = program.ops[0].in[0], b = program.ops[0].in[1];
      const ElementType type = program.ops[0].kernel.in_type[0];
      const bool natural = IsFloat(type)
                               ? compare.type == CompareType::kTotalOrder
                               : compare.type == (IsSignedInteger(type) ? CompareType::kSigned
                                                                        : CompareType::kUnsigned);
      if (!natural || a / 2 != b / 2 || a == b) continue;
      if (compare.direction != Direction::kLt && compare.direction != Direction::kGt) continue;
      data->key_operand = a / 2;
      data->descending = (compare.direction == Direction::kGt) != (a > b);
    }
  }
  step->fn = RunSort;
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerTopK(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<TopKAttrs>();
  const Shape& in = *context.operand_shape(0);
  if (in.rank() == 0 || attrs.k < 0 || attrs.k > in.dim(in.rank() - 1) ||
      step->shapes.size() != 2 || step->shapes[1].type != ElementType::kS32 ||
      step->shapes[0].dims.back() != attrs.k) {
    return context.Error("E311", "the result does not fit the operand and k");
  }
  if (IsComplex(in.element_type())) return context.Unimplemented("an order of complex numbers");
  auto data = std::make_unique<TopKData>();
  data->largest = attrs.largest;
  step->fn = RunTopK;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace shardcall
