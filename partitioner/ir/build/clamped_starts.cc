// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/clamped_starts.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"

namespace shardcall {
inline namespace internal {

InstrId ClampStart(GraphBuilder& b, InstrId start, int64_t most) {
  const ElementType type = b.type(start);
  const int bits = ElementTypeBits(type) - (IsSignedInteger(type) ? 1 : 0);
  if (bits < 63) most = std::min(most, (int64_t{1} << bits) - 1);
  return b.Clamp(b.Zero(type), start, b.ConstantInt(type, most));
}

InstrId ClampIndices(GraphBuilder& b, InstrId indices, int64_t index_vector_dim,
                     absl::Span<const int64_t> most) {
  const Shape* const shape = b.shape(indices);
  const auto zeros = absl::InlinedVector<int64_t, 4>(shape->rank(), 0);
  absl::InlinedVector<InstrId, 4> parts;
  for (size_t c = 0; c < most.size(); ++c) {
    InstrId part = indices;
    absl::InlinedVector<int64_t, 4> one(shape->dims().begin(), shape->dims().end());
    if (index_vector_dim < shape->rank()) {
      auto starts = zeros, limits = one;
      starts[index_vector_dim] = static_cast<int64_t>(c);
      limits[index_vector_dim] = static_cast<int64_t>(c) + 1;
      part = b.Slice(part, starts, limits);
      one[index_vector_dim] = 1;
    }
    parts.push_back(b.Reshape(ClampStart(b, b.Reshape(part, {}), most[c]), one));
  }
  return parts.size() == 1 ? parts[0] : b.Concatenate(parts, index_vector_dim);
}

}  // namespace internal
}  // namespace shardcall
