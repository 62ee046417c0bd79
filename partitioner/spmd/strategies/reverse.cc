// SPDX-License-Identifier: Apache-2.0
// Reverse along sharded dimensions. Whole tiles change places, for all dimensions at once: one
// permute of what each device has reversed, which goes together with a permute of a reshard. Where
// shards do not divide a dimension, the padding of the last tile is at the beginning then, so that
// all is shifted by it, by a halo exchange. If that is much of a tile, each device gets, along one
// dimension after the other, the range that mirrors its tile, and reverses it.
#include <vector>

#include "shardcall/partitioner/spmd/localize/exchange.h"
#include "shardcall/partitioner/spmd/localize/group_collectives.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/exchanged.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

// The axes of the sharded dimensions that are reversed.
AxisList MirroredAxes(const Instruction& reverse, const Sharding& s) {
  AxisList axes;
  for (int64_t d : reverse.as<DimensionsAttrs>().dimensions) {
    const auto dim = s.dim(static_cast<int>(d));
    axes.insert(axes.end(), dim.begin(), dim.end());
  }
  return axes;
}

// What is padded of dimension `d` of `x`, in shards of `s`.
int64_t PaddingOf(const Shape& x, const Sharding& s, int d) {
  return CeilDiv(x.dim(d), s.num_shards(d)) * s.num_shards(d) - x.dim(d);
}

// Whether whole tiles change places: where several dimensions are reversed, or little is shifted.
bool MovesTiles(const Instruction& reverse, const Shape& x, const Sharding& s) {
  constexpr int64_t kLittle = 1024;
  int sharded = 0;
  bool little = true;
  for (int64_t dim : reverse.as<DimensionsAttrs>().dimensions) {
    const int d = static_cast<int>(dim);
    if (!s.IsDimSharded(d)) continue;
    const int64_t tile = CeilDiv(x.dim(d), s.num_shards(d)), padding = PaddingOf(x, s, d);
    if (padding > tile) return false;  // shifted by more than a tile
    ++sharded;
    little = little && kLittle * padding <= tile;
  }
  return little || sharded > 1;
}

// By how much the reversed tiles are to be shifted along dimension d of the padded `x`.
ShardRanges Shift(const Shape& x, const Sharding& s, int d) {
  const int64_t shards = s.num_shards(d);
  ShardRanges r = ShardRanges::Of(CeilDiv(x.dim(d), shards) * shards, shards);
  r.step = r.length = r.tile;
  r.offset = PaddingOf(x, s, d);
  return r;
}

bool Complete(const OpQuery& op, Candidate* c) {
  const Sharding& s = *c->operands[0];
  const Shape& x = *op.shapes[0];
  const bool moves_tiles = MovesTiles(op.instr(), x, s);
  const auto bits = static_cast<double>(LocalBits(op.shapes[0], s));
  double kept = 1;  // of the shards: those in the middle
  for (int64_t dim : op.instr().as<DimensionsAttrs>().dimensions) {
    const int d = static_cast<int>(dim);
    if (!s.IsDimSharded(d)) continue;
    ShardRanges r = ShardRanges::Of(x.dim(d), s.num_shards(d));
    kept *= r.num_shards % 2 == 0 ? 0 : 1 / static_cast<double>(r.num_shards);
    if (moves_tiles) {
      if (PaddingOf(x, s, d) == 0) continue;
      AddEmittedExchange(op.module.context(), Shift(x, s, d), bits / static_cast<double>(r.tile), s,
                         d, c);
      continue;
    }
    r.length = r.tile;
    r.step = -r.tile;
    r.offset = r.extent - r.tile;
    c->exchanges.push_back({0, d, r});
  }
  if (moves_tiles && kept < 1) {
    c->AddEmitted(op.module.context(),
                  (1 - kept) * static_cast<double>(LocalBytes(op.shapes[0], s)), *s.mesh(),
                  MirroredAxes(op.instr(), s), Collective::kPermute);
  }
  return true;
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const LocalIds reversed = ops.Clone(op, op.operands);
  const Sharding& s = *op.decision.operands[0];
  const AxisList axes = MirroredAxes(op.instr, s);
  if (axes.empty() || !op.decision.exchanges.empty()) return reversed;
  const BaseMesh& mesh = *s.mesh();
  std::vector<int64_t> sources, targets;
  for (int64_t p = 0; p < mesh.num_devices(); ++p) {
    int64_t mirrored = p;
    for (const AxisRef& axis : axes) {
      const int64_t at = mesh.Coordinate({axis}, p);
      mirrored += (axis.size - 1 - 2 * at) * mesh.Stride(axis);
    }
    sources.push_back(mesh.order().DeviceAt(mirrored));
    targets.push_back(mesh.order().DeviceAt(p));
  }
  InstrId x = SendPairs(ops.emitter(), reversed[0], sources, targets);
  const Shape& whole = *op.operand_shapes[0];
  for (int64_t dim : op.instr.as<DimensionsAttrs>().dimensions) {
    const int d = static_cast<int>(dim);
    if (!s.IsDimSharded(d) || PaddingOf(whole, s, d) == 0) continue;
    x = EmitExchange(ops.emitter(), x, d, s.dim(d), Shift(whole, s, d));
  }
  return {x};
}

}  // namespace

constexpr Strategy kReverseStrategy{
    .name = "mirrored shards", .crosses = HasDimInFirst, .complete = Complete, .emit = Emit};

}  // namespace internal
}  // namespace shardcall
