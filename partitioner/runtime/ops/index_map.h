// SPDX-License-Identifier: Apache-2.0
// Shared by gather and scatter: a list of start indices, each of which places a window in an
// operand and in an array of windows (gather's result, scatter's updates).
#ifndef SHARDCALL_PARTITIONER_RUNTIME_OPS_INDEX_MAP_H_
#define SHARDCALL_PARTITIONER_RUNTIME_OPS_INDEX_MAP_H_

#include <cstdint>

#include "absl/status/status.h"
#include "shardcall/partitioner/ir/attributes.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/tensor.h"

namespace shardcall {
inline namespace internal {

struct IndexMap {
  Dims operand_dims;
  Dims window;               // extent by operand dimension; 1 where it is not in a window
  Dims index_to_operand;     // operand dimension of each index component
  int64_t index_stride = 0;  // between components, in elements of the indices
  Dims batch_dims;           // of the list of start indices
  Dims batch_index_strides, batch_window_strides;
  // (k, c): operand dimension k is indexed by batch coordinate c.
  absl::InlinedVector<std::pair<int, int>, 2> batching;
  // The window's dimensions, without those of size 1.
  Dims window_dims, window_operand_strides, window_array_strides;
  // The trailing part of a window that is contiguous on both sides.
  int64_t run = 1;
  Dims outer_dims, outer_operand_strides, outer_array_strides;

  // Window starts for the batch position: start[k] for each operand dimension.
  void Start(const Tensor& indices, absl::Span<const int64_t> batch, Dims* start) const;
};

// `array` holds the windows; `window_dims_of_array` lists its window dimensions.
struct IndexMapSpec {
  const Shape* operand;
  const Shape* indices;
  const Shape* array;
  Ints window_dims_of_array;
  Ints dropped;  // operand dimensions that are not in a window
  Ints index_to_operand;
  Ints operand_batching, indices_batching;
  int64_t index_vector_dim;
  Dims window;  // extent by operand dimension
};
absl::Status MakeIndexMap(const LowerContext& context, const IndexMapSpec& spec, IndexMap* out);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_OPS_INDEX_MAP_H_
