// SPDX-License-Identifier: Apache-2.0
// Select-and-scatter (the gradient of a max pooling) along a sharded dimension, in which windows
// are not padded: each device runs all windows that see its tile of the operand, whole, and keeps
// its tile. With windows of K rows every S rows, a tile that begins at row t is seen from window
// ceil((t - K + 1) / S) on; where windows leave gaps, from the one at or before t, so that what it
// computes has the tile's first row.
#include <algorithm>
#include <vector>

#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/exchanged.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal {
namespace {

// The windows that each shard runs, and the rows of the operand that they see.
struct Seen {
  ShardRanges windows, rows;
};
Seen SeenBy(const Window& w, int d, int64_t num_rows, int64_t num_windows, int64_t shards) {
  const int64_t size = w.size[d], stride = w.stride[d], tile = CeilDiv(num_rows, shards);
  Seen seen{ShardRanges::Of(num_windows, shards), ShardRanges::Of(num_rows, shards)};
  seen.windows.step = seen.rows.step = tile;
  seen.windows.offset = seen.rows.offset = std::min<int64_t>(stride - size, 0);
  seen.windows.divisor = seen.rows.divisor = stride;
  seen.rows.scale = stride;
  for (int64_t i = 0; i < shards; ++i) {
    const int64_t last = FloorDiv(tile * (i + 1) - 1, stride);
    seen.windows.length = std::max(seen.windows.length, last - seen.windows.Start(i) + 1);
    seen.rows.length = std::max(seen.rows.length, tile * (i + 1) - seen.rows.Start(i));
  }
  seen.rows.length = std::max(seen.rows.length, (seen.windows.length - 1) * stride + size);
  return seen;
}

bool Complete(const OpQuery& op, Candidate* c) {
  const auto& attrs = op.instr().as<SelectAndScatterAttrs>();
  const Window& w = attrs.window;
  // What a window that does not exist would scatter is the identity.
  PartialOp scatter;
  const bool known = RecognizePartialOp(op.module, attrs.scatter, &scatter) &&
                     HasIdentity(scatter, op.shapes[1]->element_type());
  const Sharding& s = *c->operands[0];
  for (int d = 0; d < s.rank(); ++d) {
    if (!s.IsDimSharded(d)) continue;
    if (FactorOfDim(*op.rule, 0, d).kind != FactorKind::kPermutation) continue;
    if (!known || w.pad_low[d] != 0 || w.pad_high[d] != 0) return false;
    const Seen seen = SeenBy(w, d, op.shapes[0]->dim(d), op.shapes[1]->dim(d), s.num_shards(d));
    c->exchanges.push_back({0, d, seen.rows});
    c->exchanges.push_back({1, d, seen.windows});
  }
  return true;
}

LocalIds Emit(Localizer& l, const LocalOp& op) {
  if (op.decision.exchanges.empty()) return l.Clone(op, op.operands);
  GraphBuilder& b = l.builder();
  SelectAndScatterAttrs attrs = op.instr.as<SelectAndScatterAttrs>();
  Opcode monoid;
  SHARDCALL_CHECK(RecognizeMonoid(l.global(), attrs.scatter, &monoid));
  const InstrId source =
      FilledOutside(l, op, 1, b.Identity(monoid, b.type(op.operands[1]), ZeroSign::kExact));
  attrs.select = l.CopyComputation(attrs.select);
  attrs.scatter = l.CopyComputation(attrs.scatter);
  const InstrId rows = b.Add(Opcode::kSelectAndScatter, {op.operands[0], source, op.operands[2]},
                             InternAttributes(l.context(), attrs));
  std::vector<InstrId> starts(op.instr.shape->rank(), b.Zero(ElementType::kS32));
  for (const Exchange& e : op.decision.exchanges) {
    if (e.operand != 0) continue;
    std::vector<int64_t> before;  // rows of what was computed that come before the tile
    for (int64_t i = 0; i < e.ranges.num_shards; ++i) {
      before.push_back(e.ranges.tile * i - e.ranges.Start(i));
    }
    starts[e.dim] = l.emitter().OfShard(op.decision.operands[0]->dim(e.dim), before);
  }
  return {b.DynamicSlice(rows, starts, op.result_shapes[0]->dims())};
}

}  // namespace

constexpr Strategy kSelectAndScatterStrategy{.name = "halo exchange of scattered windows",
                                             .crosses = HasDimInFirst,
                                             .complete = Complete,
                                             .emit = Emit};

}  // namespace shardcall::inline internal
