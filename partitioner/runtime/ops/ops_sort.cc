// SPDX-License-Identifier: Apache-2.0
// sort and topk. If the comparator orders by one key, lines are sorted by it. Otherwise indices are
// sorted by a stable merge sort, for which a comparator that is not a strict order does no harm.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "shardcall/kernels/math/sort_keys.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/ops/lane_program.h"
#include "shardcall/partitioner/runtime/ops/sort_order.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

struct SortData : OpData {
  LaneProgram comparator;
  int dimension = 0;
  absl::optional<SortKey> key;
};

template <typename T>
void Permute(const char* from, const std::vector<int64_t>& order, int64_t stride, char* to) {
  const int64_t n = static_cast<int64_t>(order.size());
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to + i * stride * sizeof(T), from + order[i] * sizeof(T), sizeof(T));
  }
}

// to[i * stride] = from[order[i]], in elements.
void PermuteLine(int bytes, const char* from, const std::vector<int64_t>& order, int64_t stride,
                 char* to) {
  switch (bytes) {
    case 1: return Permute<uint8_t>(from, order, stride, to);
    case 2: return Permute<uint16_t>(from, order, stride, to);
    case 4: return Permute<uint32_t>(from, order, stride, to);
    case 8: return Permute<uint64_t>(from, order, stride, to);
    default: return Permute<std::array<uint64_t, 2>>(from, order, stride, to);
  }
}

// The sort keys of lines, concatenated.
class LineKeys {
 public:
  LineKeys(const SortKey& key, int64_t extent)
      : key_(key), extent_(extent), runner_(key.program, std::min<int64_t>(extent, kLanes)) {
    if (key.parameter < 0) values_ = Tensor(key.program.result_type(0), {extent});
  }
  // False if the keys cannot be ordered.
  bool Make(const std::vector<std::vector<char>>& line, ElementType type,
            std::vector<int64_t>* keys) {
    const void* values = line[std::max(key_.parameter, 0) / 2].data();
    if (key_.parameter < 0) {
      type = values_.type();
      values = values_.data();
      std::vector<const void*> params(key_.program.num_parameters);
      for (int64_t at = 0; at < extent_; at += kLanes) {
        for (size_t k = 0; k < params.size(); ++k) {
          params[k] = line[k / 2].data() + at * static_cast<int64_t>(line[k / 2].size()) / extent_;
        }
        void* results[] = {values_.MutableData() + at * values_.element_bytes()};
        runner_.Run(params.data(), results, std::min(kLanes, extent_ - at));
      }
    }
    OrderKeys(type, values, extent_, keys);
    return !key_.numbers || NumberKeys(type, absl::MakeSpan(*keys));
  }

 private:
  static constexpr int64_t kLanes = 1024;
  const SortKey& key_;
  const int64_t extent_;
  LaneRunner runner_;
  Tensor values_;
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
  std::vector<uint64_t> packed;
  absl::optional<LineKeys> line_keys;
  ElementType key_type = ElementType::kInvalid;
  if (data.key && lines > 0) {
    line_keys.emplace(*data.key, extent);
    if (data.key->parameter >= 0) key_type = out[data.key->parameter / 2].type();
  }
  for (int64_t l = 0; l < lines; ++l) {
    const int64_t first = l / inner * extent * inner + l % inner;
    const int64_t n[] = {extent}, src[] = {inner}, dst[] = {1};
    for (int k = 0; k < count; ++k) {
      const int bytes = out[k].element_bytes();
      CopyStrided(bytes, n, run.in(k).data() + first * bytes, src, line[k].data(), dst);
    }
    if (line_keys && line_keys->Make(line, key_type, &keys)) {
      StableOrder(keys, data.key->descending, absl::MakeSpan(order), &packed);
    } else {
      std::iota(order.begin(), order.end(), 0);
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
      PermuteLine(bytes, line[k].data(), order, inner, out[k].MutableData() + first * bytes);
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
  data->key = FindSortKey(context.module, attrs.to_apply, program);
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

}  // namespace internal
}  // namespace shardcall
