// SPDX-License-Identifier: Apache-2.0
// In a dimension with shards of T rows, of which this one starts at row t, for S rows from `start`:
//   first = start - t              where they begin, counted from the shard; may lie outside of it
//   place = clamp(0, first, T - W) a window of W = min(S, T) rows of the shard that holds all of
//                                  them that the shard has
//   row j of the result is row j + first - place of the window, if 0 <= j + first < T
#include "shardcall/partitioner/spmd/strategies/own_rows.h"

#include <algorithm>
#include <vector>

#include "shardcall/partitioner/ir/build/clamped_starts.h"
#include "shardcall/partitioner/spmd/strategies/indices.h"

namespace shardcall::inline internal {
namespace {

using Dims = absl::InlinedVector<int64_t, 8>;

// The window of one dimension.
struct Window {
  int dim;
  int64_t size, shard_rows;
  InstrId first, place;
};

// The rows of `x`, which has the window's, at their places; any others where it has none.
InstrId Shift(GraphBuilder& b, InstrId x, const Window& w) {
  const Shape* shape = b.shape(x);
  Dims edge(shape->rank(), 0), sizes(shape->dims().begin(), shape->dims().end());
  edge[w.dim] = w.size;
  sizes[w.dim] = w.size;
  const InstrId padded = b.Pad(x, b.Zero(shape->element_type()), edge, edge);
  const ElementType type = b.type(w.first);
  const InstrId shift = b.Binary(Opcode::kSubtract, w.first, w.place);
  const InstrId from = b.Binary(Opcode::kAdd, shift, b.ConstantInt(type, w.size));
  std::vector<InstrId> starts(shape->rank(), b.Zero(type));
  starts[w.dim] = ClampStart(b, from, w.size + shape->dim(w.dim));
  return b.DynamicSlice(padded, starts, sizes);
}

// pred[size]: which rows the shard has.
InstrId Mask(GraphBuilder& b, const Window& w) {
  const InstrId iota = b.Iota(b.type(w.first), {w.size}, 0);
  const InstrId row = b.Binary(Opcode::kAdd, iota, SplatLike(b, w.first, iota));
  return b.Binary(Opcode::kAnd, b.Compare(Direction::kGe, row, SplatIntLike(b, 0, row)),
                  b.Compare(Direction::kLt, row, SplatIntLike(b, w.shard_rows, row)));
}

}  // namespace

InstrId TakeOwnRows(Localizer& l, InstrId x, const Shape* global, const Sharding& s,
                    absl::Span<const RowsOfDim> rows) {
  GraphBuilder& b = l.builder();
  absl::InlinedVector<Window, 2> windows;
  Dims sizes(b.shape(x)->dims().begin(), b.shape(x)->dims().end());
  std::vector<InstrId> starts(sizes.size(), b.Zero(ElementType::kS64));
  for (const RowsOfDim& r : rows) {
    Window w{.dim = r.dim, .size = r.size, .shard_rows = sizes[r.dim]};
    const InstrId start = b.Convert(r.start, ElementType::kS64);
    const InstrId tile = b.Convert(l.emitter().TileStart(s, global, r.dim), ElementType::kS64);
    w.first = b.Binary(Opcode::kSubtract, start, tile);
    sizes[r.dim] = std::min(r.size, w.shard_rows);
    w.place = ClampStart(b, w.first, w.shard_rows - sizes[r.dim]);
    starts[r.dim] = w.place;
    windows.push_back(w);
  }
  InstrId taken = b.DynamicSlice(x, starts, sizes);
  for (const Window& w : windows) {
    if (w.size > 1) taken = Shift(b, taken, w);
  }
  const Shape* shape = b.shape(taken);
  InstrId mask;
  for (const Window& w : windows) {
    const InstrId spread = b.Broadcast(Mask(b, w), shape->dims(), {w.dim});
    mask = mask.valid() ? b.Binary(Opcode::kAnd, mask, spread) : spread;
  }
  const InstrId none = b.Identity(Opcode::kAdd, shape->element_type(), ZeroSign::kExact);
  return b.Select(mask, taken, b.BroadcastScalar(none, shape));
}

}  // namespace shardcall::inline internal
