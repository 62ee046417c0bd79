// SPDX-License-Identifier: Apache-2.0
// Reverse along a sharded dimension: each device gets the range that mirrors its tile, and reverses
// it.
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/exchanged.h"

namespace shardcall {
inline namespace internal {
namespace {

bool Complete(const OpQuery& op, Candidate* c) {
  for (int64_t dim : op.instr().as<DimensionsAttrs>().dimensions) {
    const int d = static_cast<int>(dim);
    if (!c->operands[0]->IsDimSharded(d)) continue;
    ShardRanges r = ShardRanges::Of(op.shapes[0]->dim(d), c->operands[0]->num_shards(d));
    r.length = r.tile;
    r.step = -r.tile;
    r.offset = r.extent - r.tile;
    c->exchanges.push_back({0, d, r});
  }
  return true;
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) { return ops.Clone(op, op.operands); }

}  // namespace

constexpr Strategy kReverseStrategy{.name = "halo exchange of a reversal",
                                    .crosses = HasDimInFirst,
                                    .complete = Complete,
                                    .emit = Emit};

}  // namespace internal
}  // namespace shardcall
