// SPDX-License-Identifier: Apache-2.0
// Reverse along sharded dimensions. Where the shards divide them, whole tiles change places, for
// all dimensions at once: one permute of what each device has reversed. Else each device gets,
// along one dimension after the other, the range that mirrors its tile, and reverses it.
#include <vector>

#include "absl/algorithm/container.h"
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

bool Divide(const Instruction& reverse, const Shape& x, const Sharding& s) {
  return absl::c_all_of(reverse.as<DimensionsAttrs>().dimensions, [&](int64_t d) {
    return x.dim(static_cast<int>(d)) % s.num_shards(static_cast<int>(d)) == 0;
  });
}

bool Complete(const OpQuery& op, Candidate* c) {
  const Sharding& s = *c->operands[0];
  const bool whole_tiles = Divide(op.instr(), *op.shapes[0], s);
  double kept = 1;  // of the shards: those in the middle
  for (int64_t dim : op.instr().as<DimensionsAttrs>().dimensions) {
    const int d = static_cast<int>(dim);
    if (!s.IsDimSharded(d)) continue;
    ShardRanges r = ShardRanges::Of(op.shapes[0]->dim(d), s.num_shards(d));
    kept *= r.num_shards % 2 == 0 ? 0 : 1 / static_cast<double>(r.num_shards);
    r.length = r.tile;
    r.step = -r.tile;
    r.offset = r.extent - r.tile;
    if (!whole_tiles) c->exchanges.push_back({0, d, r});
  }
  if (whole_tiles && kept < 1) {
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
  return {SendPairs(ops.emitter(), reversed[0], sources, targets)};
}

}  // namespace

constexpr Strategy kReverseStrategy{
    .name = "mirrored shards", .crosses = HasDimInFirst, .complete = Complete, .emit = Emit};

}  // namespace internal
}  // namespace shardcall
