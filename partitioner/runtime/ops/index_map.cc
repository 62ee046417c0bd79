// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/ops/index_map.h"

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/runtime/strided.h"

namespace shardcall {
inline namespace internal {
void IndexMap::Start(const Tensor& indices, absl::Span<const int64_t> batch, Dims* start) const {
  int64_t at = 0;
  for (size_t k = 0; k < batch.size(); ++k) at += batch[k] * batch_index_strides[k];
  std::fill(start->begin(), start->end(), 0);
  for (size_t j = 0; j < index_to_operand.size(); ++j) {
    int64_t value = IntElement(indices, at + static_cast<int64_t>(j) * index_stride);
    if (indices.type() == ElementType::kU64 && value < 0) value = INT64_MAX;
    (*start)[index_to_operand[j]] = value;
  }
  for (const auto& [dim, coordinate] : batching) (*start)[dim] = batch[coordinate];
}

absl::Status MakeIndexMap(const LowerContext& context, const IndexMapSpec& spec, IndexMap* out) {
  const Shape& operand = *spec.operand;
  const Shape& indices = *spec.indices;
  const Shape& array = *spec.array;
  if (!IsInteger(indices.element_type())) return context.Error("E311", "indices must be integers");
  const Dims operand_strides = RowMajorStrides(operand.dims());
  const Dims index_strides = RowMajorStrides(indices.dims());
  const Dims array_strides = RowMajorStrides(array.dims());
  out->operand_dims.assign(operand.dims().begin(), operand.dims().end());
  out->window = spec.window;
  out->index_to_operand.assign(spec.index_to_operand.begin(), spec.index_to_operand.end());
  const bool has_vector = spec.index_vector_dim < indices.rank();
  out->index_stride = has_vector ? index_strides[spec.index_vector_dim] : 0;
  const int64_t components = has_vector ? indices.dim(static_cast<int>(spec.index_vector_dim)) : 1;
  if (components != static_cast<int64_t>(spec.index_to_operand.size()) ||
      static_cast<int>(spec.window.size()) != operand.rank() ||
      spec.operand_batching.size() != spec.indices_batching.size()) {
    return context.Error("E311", "the dimension numbers do not fit the operands");
  }
  absl::InlinedVector<int, 4> batch_of_index_dim(indices.rank(), -1);
  for (int d = 0; d < indices.rank(); ++d) {
    if (d == spec.index_vector_dim) continue;
    batch_of_index_dim[d] = static_cast<int>(out->batch_dims.size());
    out->batch_dims.push_back(indices.dim(d));
    out->batch_index_strides.push_back(index_strides[d]);
  }
  for (size_t i = 0; i < spec.operand_batching.size(); ++i) {
    out->batching.emplace_back(static_cast<int>(spec.operand_batching[i]),
                               batch_of_index_dim[spec.indices_batching[i]]);
  }
  Dims window_strides;  // in the array, in the order of window dimensions
  for (int d = 0; d < array.rank(); ++d) {
    (absl::c_linear_search(spec.window_dims_of_array, d) ? window_strides
                                                         : out->batch_window_strides)
        .push_back(array_strides[d]);
  }
  size_t next = 0;
  for (int k = 0; k < operand.rank(); ++k) {
    if (absl::c_linear_search(spec.dropped, k) || absl::c_linear_search(spec.operand_batching, k)) {
      continue;
    }
    if (next >= window_strides.size()) {
      return context.Error("E311", "too few window dimensions");
    }
    out->window_dims.push_back(spec.window[k]);
    out->window_operand_strides.push_back(operand_strides[k]);
    out->window_array_strides.push_back(window_strides[next++]);
  }
  if (next != window_strides.size() || out->batch_window_strides.size() != out->batch_dims.size()) {
    return context.Error("E311", "the window dimensions do not fit the operands");
  }
  size_t outer = out->window_dims.size();
  while (outer > 0 &&
         (out->window_dims[outer - 1] == 1 || (out->window_operand_strides[outer - 1] == out->run &&
                                               out->window_array_strides[outer - 1] == out->run))) {
    out->run *= out->window_dims[--outer];
  }
  out->outer_dims.assign(out->window_dims.begin(), out->window_dims.begin() + outer);
  out->outer_operand_strides.assign(out->window_operand_strides.begin(),
                                    out->window_operand_strides.begin() + outer);
  out->outer_array_strides.assign(out->window_array_strides.begin(),
                                  out->window_array_strides.begin() + outer);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
