// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/parts/indices.h"

#include <vector>

namespace shardcall {
inline namespace internal {

InstrId WideIndices(GraphBuilder& b, InstrId indices) {
  const ElementType type = b.type(indices);
  const bool wide = ElementTypeBits(type) == 64 || type == ElementType::kU32;
  return b.Convert(indices, wide ? ElementType::kS64 : ElementType::kS32);
}

InstrId IndexComponent(GraphBuilder& b, InstrId indices, int64_t index_vector_dim, int64_t c) {
  const Shape* shape = b.shape(indices);
  if (index_vector_dim == shape->rank()) return indices;
  std::vector<int64_t> starts(shape->rank(), 0), limits(shape->dims().begin(), shape->dims().end());
  starts[index_vector_dim] = c;
  limits[index_vector_dim] = c + 1;
  const InstrId one = b.Slice(indices, starts, limits);
  std::vector<int64_t> dims;
  for (int d = 0; d < shape->rank(); ++d) {
    if (d != index_vector_dim) dims.push_back(shape->dim(d));
  }
  return b.Reshape(one, dims);
}

InstrId ReplaceComponent(GraphBuilder& b, InstrId indices, InstrId component,
                         int64_t index_vector_dim, int64_t c) {
  const Shape* shape = b.shape(indices);
  if (index_vector_dim == shape->rank()) return component;
  std::vector<InstrId> parts;
  for (int64_t k = 0; k < shape->dim(static_cast<int>(index_vector_dim)); ++k) {
    const InstrId part = k == c ? component : IndexComponent(b, indices, index_vector_dim, k);
    std::vector<int64_t> dims(shape->dims().begin(), shape->dims().end());
    dims[index_vector_dim] = 1;
    parts.push_back(b.Reshape(part, dims));
  }
  return b.Concatenate(parts, index_vector_dim);
}

InstrId SplatLike(GraphBuilder& b, InstrId scalar, InstrId like) {
  return b.BroadcastScalar(b.Convert(scalar, b.type(like)), b.shape(like));
}
InstrId SplatIntLike(GraphBuilder& b, int64_t value, InstrId like) {
  return b.BroadcastScalar(b.ConstantInt(b.type(like), value), b.shape(like));
}

}  // namespace internal
}  // namespace shardcall
