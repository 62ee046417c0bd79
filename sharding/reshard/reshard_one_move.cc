// SPDX-License-Identifier: Apache-2.0
// Most reshards differ in one place and need one move, which a search would only find more slowly.
#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "shardcall/sharding/reshard/reshard_search.h"

namespace shardcall {
inline namespace internal {
namespace {

// Whether each of the `coarse` tiles of a dimension of `size` elements consists of whole tiles of
// the `fine` ones, so that slicing or all-gathering needs no re-tile.
bool TilesNest(int64_t size, int64_t coarse, int64_t fine) {
  return coarse == 1 || CeilDiv(size, coarse) == CeilDiv(size, fine) * (fine / coarse);
}

// A dimension that two shardings cut differently, one of them into `factor` parts of the other's.
struct Change {
  int dim;
  int64_t factor;
};

// The dimensions that are gathered on the way from one sharding to the other; none if not all that
// differ are, or one does not divide.
absl::InlinedVector<Change, 4> Gathered(const Shape* global, const Sharding* from,
                                        const Sharding* to) {
  absl::InlinedVector<Change, 4> out;
  for (int d = 0; d < from->rank(); ++d) {
    if (from->dim(d) == to->dim(d)) continue;
    if (!IsPrefix(*from->mesh(), to->dim(d), from->dim(d)) ||
        global->dim(d) % from->num_shards(d) != 0) {
      return {};
    }
    out.push_back({d, from->num_shards(d) / to->num_shards(d)});
  }
  return out;
}

}  // namespace

bool MovesOfOneKind(Context& context, const Shape* global, const Sharding* from, const Sharding* to,
                    std::vector<Move>* moves) {
  if (!from->partial().empty() || !to->partial().empty() || global->byte_size() == 0) return false;
  auto changes = Gathered(global, from, to);
  if (changes.empty()) {
    changes = Gathered(global, to, from);
    // The shards are smallest between the moves if the most is cut first.
    absl::c_stable_sort(changes, [](auto& a, auto& b) { return a.factor > b.factor; });
  } else {
    absl::c_stable_sort(changes, [](auto& a, auto& b) { return a.factor < b.factor; });
  }
  if (changes.empty()) return false;
  const size_t before = moves->size();
  const Sharding* at = from;
  for (const Change& change : changes) {
    ShardingBuilder next(*at);
    next.dims[change.dim] = AxisList(to->dim(change.dim).begin(), to->dim(change.dim).end());
    const Sharding* const after = next.Intern(context);
    std::optional<Move> move = OneMove(global, at, after);
    if (!move.has_value()) {
      moves->resize(before);
      return false;
    }
    moves->push_back(*std::move(move));
    at = after;
  }
  return true;
}

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
