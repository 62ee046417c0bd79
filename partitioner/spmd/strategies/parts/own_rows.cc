// SPDX-License-Identifier: Apache-2.0
// In a dimension with shards of T rows, of which this one starts at row t, for S rows from `start`:
//   first = start - t              where they begin, counted from the shard; may lie outside of it
//   place = clamp(0, first, T - W) a window of W = min(S, T) rows of the shard that holds all of
//                                  them that the shard has
//   row j of the result is row j + first - place of the window, if 0 <= j + first < T
#include "shardcall/partitioner/spmd/strategies/parts/own_rows.h"

#include <algorithm>
#include <vector>

#include "shardcall/partitioner/ir/build/clamped_starts.h"
#include "shardcall/partitioner/spmd/strategies/parts/rows.h"

namespace shardcall {
inline namespace internal {
namespace {

using Dims = absl::InlinedVector<int64_t, 8>;

// The window of one dimension.
struct Window {
  int dim;
  int64_t size, shard_rows;
  InstrId first, place;
};

}  // namespace

InstrId TakeOwnRows(OpBuilder& ops, InstrId x, const Shape* global, const Sharding& s,
                    absl::Span<const RowsOfDim> rows) {
  GraphBuilder& b = ops.builder();
  absl::InlinedVector<Window, 2> windows;
  Dims sizes(b.shape(x)->dims().begin(), b.shape(x)->dims().end());
  std::vector<InstrId> starts(sizes.size(), b.Zero(ElementType::kS64));
  for (const RowsOfDim& r : rows) {
    Window w{.dim = r.dim, .size = r.size, .shard_rows = sizes[r.dim]};
    const InstrId start = b.Convert(r.start, ElementType::kS64);
    const InstrId tile = b.Convert(ops.emitter().TileStart(s, global, r.dim), ElementType::kS64);
    w.first = b.Binary(Opcode::kSubtract, start, tile);
    sizes[r.dim] = std::min(r.size, w.shard_rows);
    w.place = ClampStart(b, w.first, w.shard_rows - sizes[r.dim]);
    starts[r.dim] = w.place;
    windows.push_back(w);
  }
  InstrId taken = b.DynamicSlice(x, starts, sizes);
  for (const Window& w : windows) {
    if (w.size == 1) continue;
    const InstrId shift = b.Binary(Opcode::kSubtract, w.first, w.place);
    taken = ShiftedRows(b, taken, w.dim, shift, w.size);
  }
  const Shape* shape = b.shape(taken);
  InstrId mask;
  for (const Window& w : windows) {
    const InstrId spread =
        b.Broadcast(RowsInRange(b, w.first, w.size, w.shard_rows), shape->dims(), {w.dim});
    mask = mask.valid() ? b.Binary(Opcode::kAnd, mask, spread) : spread;
  }
  const InstrId none = b.Identity(Opcode::kAdd, shape->element_type(), ZeroSign::kExact);
  return b.Select(mask, taken, b.BroadcastScalar(none, shape));
}

}  // namespace internal
}  // namespace shardcall
