// SPDX-License-Identifier: Apache-2.0
// Pad along sharded dimensions: each device gets the elements that lie in its tile of the result,
// and pads them as the whole is padded there. Interior padding needs tiles in which the elements
// lie at the same places: 2 of the result for an element each, and tiles of 4, but not of 3.
#include <vector>

#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/exchanged.h"

namespace shardcall::inline internal {
namespace {

bool IsPadded(const PadAttrs& a, int d) {
  return a.low[d] != 0 || a.high[d] != 0 || a.interior[d] != 0;
}

bool Complete(const OpQuery& op, Candidate* c) {
  const auto& attrs = op.instr().as<PadAttrs>();
  for (int d = 0; d < op.shapes[0]->rank(); ++d) {
    if (!IsPadded(attrs, d) || !c->operands[0]->IsDimSharded(d)) continue;
    const int64_t n = c->operands[0]->num_shards(d);
    const int64_t tile = CeilDiv(op.result(0)->dim(d), n), pitch = attrs.interior[d] + 1;
    if (tile % pitch != 0) return false;
    ShardRanges r = ShardRanges::Of(op.shapes[0]->dim(d), n);
    r.step = r.length = tile / pitch;
    r.offset = -FloorDiv(attrs.low[d], pitch);
    c->exchanges.push_back({0, d, r});
  }
  return true;
}

LocalIds Emit(Localizer& l, const LocalOp& op) {
  PadAttrs attrs = op.instr.as<PadAttrs>();
  std::vector<int64_t> low(attrs.low.begin(), attrs.low.end());
  std::vector<int64_t> high(attrs.high.begin(), attrs.high.end());
  for (const Exchange& e : op.decision.exchanges) {
    const int64_t pitch = attrs.interior[e.dim] + 1;
    low[e.dim] -= FloorDiv(low[e.dim], pitch) * pitch;
    high[e.dim] = pitch - 1 - low[e.dim];
  }
  attrs.low = low;
  attrs.high = high;
  return l.Clone(op, {FilledOutside(l, op, 0, op.operands[1]), op.operands[1]},
                 InternAttributes(l.context(), attrs));
}

}  // namespace

constexpr Strategy kPadStrategy{
    .name = "halo exchange of a pad", .crosses = HasDimInFirst, .complete = Complete, .emit = Emit};

}  // namespace shardcall::inline internal
