// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/parts/rows.h"

#include <vector>

#include "shardcall/partitioner/ir/build/clamped_starts.h"
#include "shardcall/partitioner/spmd/strategies/parts/indices.h"

namespace shardcall {
inline namespace internal {

InstrId Rows(GraphBuilder& b, InstrId x, int dim, int64_t begin, int64_t end) {
  const Shape* shape = b.shape(x);
  std::vector<int64_t> starts(shape->rank(), 0), limits(shape->dims().begin(), shape->dims().end());
  starts[dim] = begin;
  limits[dim] = end;
  return b.Slice(x, starts, limits);
}

InstrId WithRowsAround(GraphBuilder& b, InstrId x, int dim, int64_t rows, InstrId value) {
  std::vector<int64_t> edge(b.shape(x)->rank(), 0);
  edge[dim] = rows;
  return b.Pad(x, value, edge, edge);
}

InstrId ShiftedRows(GraphBuilder& b, InstrId x, int dim, InstrId shift, int64_t size) {
  const Shape* shape = b.shape(x);
  std::vector<int64_t> sizes(shape->dims().begin(), shape->dims().end());
  sizes[dim] = size;
  const InstrId padded = WithRowsAround(b, x, dim, size, b.Zero(shape->element_type()));
  const ElementType type = b.type(shift);
  const InstrId from = b.Binary(Opcode::kAdd, shift, b.ConstantInt(type, size));
  std::vector<InstrId> starts(shape->rank(), b.Zero(type));
  starts[dim] = ClampStart(b, from, shape->dim(dim) + size);
  return b.DynamicSlice(padded, starts, sizes);
}

InstrId RowsInRange(GraphBuilder& b, InstrId shift, int64_t size, int64_t rows) {
  const InstrId iota = b.Iota(b.type(shift), {size}, 0);
  const InstrId row = b.Binary(Opcode::kAdd, iota, SplatLike(b, shift, iota));
  return b.Binary(Opcode::kAnd, b.Compare(Direction::kGe, row, SplatIntLike(b, 0, row)),
                  b.Compare(Direction::kLt, row, SplatIntLike(b, rows, row)));
}

}  // namespace internal
}  // namespace shardcall
