// SPDX-License-Identifier: Apache-2.0
// Most reshards differ in one place and need one move, which a search would only find more slowly.
#include "shardcall/sharding/reshard/reshard_search.h"

namespace shardcall {
inline namespace internal {
namespace {

// Whether each of the `coarse` tiles of a dimension of `size` elements consists of whole tiles of
// the `fine` ones, so that slicing or all-gathering needs no re-tile.
bool TilesNest(int64_t size, int64_t coarse, int64_t fine) {
  return coarse == 1 || CeilDiv(size, coarse) == CeilDiv(size, fine) * (fine / coarse);
}

}  // namespace

std::optional<Move> OneMove(const Shape* global, const Sharding* from, const Sharding* to) {
  int dim = -1;
  for (int d = 0; d < from->rank(); ++d) {
    if (from->dim(d) == to->dim(d)) continue;
    if (dim >= 0) return std::nullopt;
    dim = d;
  }
  const bool same_partial =
      from->partial() == to->partial() && from->partial_op() == to->partial_op();
  if (same_partial == (dim < 0)) return std::nullopt;  // both differ, or neither
  Move move{MoveKind::kAllReduce, AxisList(from->partial().begin(), from->partial().end())};
  move.before = from;
  move.after = to;
  move.dim = dim;
  if (dim < 0) {
    if (!to->partial().empty()) return std::nullopt;
    // A reduction that gathers the parts sends fewer bytes when it goes one axis at a time.
    if (!EngineReduces(from->partial_op(), global->element_type()) && move.axes.size() > 1) {
      return std::nullopt;
    }
    move.bytes =
        AllReduceBytes(from->partial_op(), global->element_type(), LocalBytes(global, *from),
                       static_cast<double>(AxesSize(move.axes)));
    return move;
  }
  const bool gathers = from->num_shards(dim) > to->num_shards(dim);
  const Sharding &coarse = gathers ? *to : *from, &fine = gathers ? *from : *to;
  if (!IsPrefix(*from->mesh(), coarse.dim(dim), fine.dim(dim)) ||
      !TilesNest(global->dim(dim), coarse.num_shards(dim), fine.num_shards(dim))) {
    return std::nullopt;
  }
  move.kind = gathers ? MoveKind::kAllGather : MoveKind::kSlice;
  move.axes = RemovePrefix(*from->mesh(), coarse.dim(dim), fine.dim(dim));
  if (gathers) {
    move.bytes = CollectiveBytes(MoveKind::kAllGather, LocalBytes(global, *from),
                                 static_cast<double>(AxesSize(move.axes)));
    if (from->rank() > 1 && GathersPadding(global->dim(dim), from->num_shards(dim), move.bytes)) {
      return std::nullopt;
    }
  }
  return move;
}

}  // namespace internal
}  // namespace shardcall
