// SPDX-License-Identifier: Apache-2.0
// The moves of a reshard plan as HLO.
#include <algorithm>
#include <numeric>
#include <vector>

#include "shardcall/partitioner/spmd/localize/emitter.h"
#include "shardcall/partitioner/spmd/localize/exchange.h"
#include "shardcall/partitioner/spmd/localize/group_collectives.h"
#include "shardcall/partitioner/spmd/localize/numbered.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/reshard/permute_sources.h"
#include "shardcall/sharding/reshard/retile.h"

namespace shardcall {
inline namespace internal {
namespace {

using Dims = absl::InlinedVector<int64_t, 8>;

int64_t Tile(const Shape* global, const Sharding* s, int dim) {
  return CeilDiv(global->dim(dim), s->num_shards(dim));
}

bool Reduces(MoveKind kind) {
  return kind == MoveKind::kAllReduce || kind == MoveKind::kReduceScatter;
}

// Of what the moves that reduce nothing send, the share that is needed.
double NeededShare(const ReshardPlan& plan) {
  double sent = 0;
  for (const Move& m : plan.moves) sent += Reduces(m.kind) ? 0 : m.bytes;
  return sent > 0 ? std::min(1.0, plan.lower_bound / sent) : 1;
}

}  // namespace

InstrId Emitter::Reshard(InstrId x, const Shape* global, const Sharding* from, const Sharding* to,
                         absl::InlinedVector<InstrId, 4>* steps) {
  if (from == to) return x;
  if (global->num_elements() == 0) {  // nothing to send
    const Shape* local = LocalShape(b_.context(), global, to);
    return b_.BroadcastScalar(b_.Zero(local->element_type()), local);
  }
  if (names_states_) from_ = from, to_ = to;
  const ReshardPlan& plan = PlanReshard(b_.context(), global, from, to);
  const double needed = NeededShare(plan);
  for (const Move& move : plan.moves) {
    needed_share_ = Reduces(move.kind) ? 1 : needed;
    x = EmitMove(x, global, move);
    if (steps != nullptr) steps->push_back(x);
  }
  from_ = to_ = nullptr;
  needed_share_ = -1;
  return x;
}

InstrId Emitter::ReshardInside(InstrId x, const Shape* global, const Sharding* from,
                               const Sharding* to) {
  names_states_ = false;
  x = Reshard(x, global, from, to);
  names_states_ = true;
  return x;
}

InstrId Emitter::EmitMove(InstrId x, const Shape* global, const Move& move) {
  const BaseMesh* const before = mesh_;
  mesh_ = move.before->mesh();
  switch (move.kind) {
    case MoveKind::kSlice: x = EmitSlice(x, global, move); break;
    case MoveKind::kAllGather:
      x = AllGather(x, move.dim, move.axes);
      x = Retile(x, global, move.dim, move.after, Tile(global, move.after, move.dim));
      break;
    case MoveKind::kAllToAll: x = EmitAllToAll(x, global, move); break;
    case MoveKind::kReduceScatter:
      x = Retile(x, global, move.dim, move.before,
                 AxesSize(move.axes) * Tile(global, move.after, move.dim));
      x = ReduceScatter(x, move.dim, move.axes, move.before->partial_op());
      break;
    case MoveKind::kAllReduce: x = AllReduce(x, move.axes, move.before->partial_op()); break;
    case MoveKind::kPermute: x = EmitPermute(x, move); break;
    case MoveKind::kDropPartial: x = OnFirst(x, move.axes, move.after->partial_op()); break;
    case MoveKind::kPadPartial: x = EmitPadPartial(x, global, move); break;
  }
  mesh_ = before;
  return x;
}

InstrId Emitter::Retile(InstrId x, const Shape* global, int d, const Sharding* s, int64_t tile) {
  const int64_t have = b_.shape(x)->dim(d);
  if (have == tile) return x;
  if (s->dim(d).empty()) return have < tile ? PadDim(x, d, tile) : TrimDim(x, d, tile);
  return EmitExchange(*this, x, d, s->dim(d),
                      RetileRanges(global->dim(d), s->num_shards(d), have, tile));
}

InstrId Emitter::EmitSlice(InstrId x, const Shape* global, const Move& move) {
  const int d = move.dim;
  const int64_t tile = Tile(global, move.after, d);
  x = Retile(x, global, d, move.before, AxesSize(move.axes) * tile);
  const Shape* shape = b_.shape(x);
  Dims sizes(shape->dims().begin(), shape->dims().end());
  sizes[d] = tile;
  return b_.DynamicSlice(x, StartsOfTile(shape->rank(), d, move.axes, tile), sizes);
}

absl::InlinedVector<InstrId, 8> Emitter::StartsOfTile(int rank, int d,
                                                      absl::Span<const AxisRef> axes,
                                                      int64_t tile) {
  absl::InlinedVector<InstrId, 8> starts(rank, b_.ConstantInt(ElementType::kS32, 0));
  Numbered numbered(b_);
  starts[d] = b_.Binary(Opcode::kMultiply, Coordinate(mesh_, axes),
                        b_.ConstantInt(ElementType::kS32, tile));
  return starts;
}

InstrId Emitter::EmitPadPartial(InstrId x, const Shape* global, const Move& move) {
  const int d = move.dim;
  const Shape* shape = b_.shape(x);
  Dims dims(shape->dims().begin(), shape->dims().end());
  dims[d] *= AxesSize(move.axes);
  const InstrId identity =
      b_.Identity(MonoidOf(move.after->partial_op()), shape->element_type(), ZeroSign::kExact);
  const InstrId around = b_.BroadcastScalar(identity, b_.context().WithDims(shape, dims));
  const auto starts = StartsOfTile(shape->rank(), d, move.axes, shape->dim(d));
  return TrimDim(b_.DynamicUpdateSlice(around, x, starts), d, Tile(global, move.after, d));
}

// Dimension q is split into [m, T_q], the m blocks are exchanged, and the block dimension, which
// then numbers the sender, becomes the major part of dimension p.
InstrId Emitter::EmitAllToAll(InstrId x, const Shape* global, const Move& move) {
  const int p = move.dim, q = move.dim2;
  const int64_t m = AxesSize(move.axes);
  const int64_t tile_q = Tile(global, move.after, q);
  x = Retile(x, global, q, move.before, m * tile_q);
  const Shape* shape = b_.shape(x);
  Dims split;
  for (int d = 0; d < shape->rank(); ++d) {
    if (d == q) split.push_back(m);
    split.push_back(d == q ? tile_q : shape->dim(d));
  }
  x = b_.Reshape(x, split);
  x = GroupCollectives(*this, Groups(move.axes)).AllToAll(x, q);
  // The block dimension goes right before p.
  Dims permutation;
  const int p_at = p < q ? p : p + 1;
  for (int d = 0; d <= shape->rank(); ++d) {
    if (d == q) continue;
    if (d == p_at) permutation.push_back(q);
    permutation.push_back(d);
  }
  x = b_.Transpose(x, permutation);
  Dims merged;
  for (int d = 0; d < shape->rank(); ++d) {
    merged.push_back(d == p ? m * shape->dim(d) : d == q ? tile_q : shape->dim(d));
  }
  x = b_.Reshape(x, merged);
  return Retile(x, global, p, move.after, Tile(global, move.after, p));
}

InstrId Emitter::EmitPermute(InstrId x, const Move& move) {
  const std::vector<int64_t> sources = PermuteSources(*move.before, *move.after);
  const int64_t n = static_cast<int64_t>(sources.size());
  std::vector<int64_t> targets;
  targets.reserve(n);
  for (int64_t p = 0; p < n; ++p) targets.push_back(move.after->mesh()->order().DeviceAt(p));
  if (sources == targets) return x;
  return SendPairs(*this, x, sources, targets);
}

}  // namespace internal
}  // namespace shardcall
