// SPDX-License-Identifier: Apache-2.0
// Select-and-scatter (the gradient of a max pooling) along a sharded dimension: each device runs
// all windows that see its tile of the operand, whole, and keeps its tile. With windows of K rows
// every S rows that begin at row -P, a tile that begins at row t is seen from window ceil((t + P -
// K + 1) / S) on; where windows leave gaps, from the one at or before t + P, so that what it
// computes has the tile's first row.
//
// Rows of padding must not be selected. There the shards at the edges have copies of the first or
// the last row: a comparison that meets a value twice decides as if it met it once. What is
// scattered to a copy belongs to its row.
#include <algorithm>
#include <vector>

#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/spmd/localize/exchange.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/exchanged.h"
#include "shardcall/partitioner/spmd/strategies/parts/sharded_window.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

// The windows that each shard runs, and the rows of the operand that they see.
struct Seen {
  ShardRanges windows, rows;
};
Seen SeenBy(const Window& w, int d, int64_t num_rows, int64_t num_windows, int64_t shards) {
  const int64_t size = w.size[d], stride = w.stride[d], tile = CeilDiv(num_rows, shards);
  Seen seen{ShardRanges::Of(num_windows, shards), ShardRanges::Of(num_rows, shards)};
  seen.windows.step = seen.rows.step = tile;
  seen.windows.offset = seen.rows.offset = std::min<int64_t>(stride - size, 0) + w.pad_low[d];
  seen.windows.divisor = seen.rows.divisor = stride;
  seen.rows.scale = stride;
  seen.rows.shift = -w.pad_low[d];
  for (int64_t i = 0; i < shards; ++i) {
    const int64_t last = FloorDiv(tile * (i + 1) - 1 + w.pad_low[d], stride);
    seen.windows.length = std::max(seen.windows.length, last - seen.windows.Start(i) + 1);
    seen.rows.length = std::max(seen.rows.length, tile * (i + 1) - seen.rows.Start(i));
  }
  seen.rows.length = std::max(seen.rows.length, (seen.windows.length - 1) * stride + size);
  return seen;
}

bool IsPadded(const Window& w, int d) { return w.pad_low[d] != 0 || w.pad_high[d] != 0; }

// Whether `select` keeps the larger or the smaller one of two numbers.
bool KeepsExtremum(const Module& m, CompId select) {
  const Instruction& root = m.instr(m.comp(select).root);
  if (root.opcode != Opcode::kCompare) return false;
  const auto parameters = absl::MakeConstSpan(m.comp(select).parameters);
  const Direction direction = root.as<CompareAttrs>().direction;
  return m.operands(root) == parameters && direction != Direction::kEq &&
         direction != Direction::kNe;
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
    if (!known) return false;
    if (IsPadded(w, d)) {
      const auto begins_inside = [&](int64_t pad) { return pad >= 0 && pad < w.size[d]; };
      if (!begins_inside(w.pad_low[d]) || !begins_inside(w.pad_high[d])) return false;
      if (!KeepsExtremum(op.module, attrs.select)) return false;
    }
    const Seen seen = SeenBy(w, d, op.shapes[0]->dim(d), op.shapes[1]->dim(d), s.num_shards(d));
    c->exchanges.push_back({0, d, seen.rows});
    c->exchanges.push_back({1, d, seen.windows});
  }
  return true;
}

// Rows that an exchange has brought, those of padding among them.
class EdgeRows {
 public:
  EdgeRows(OpBuilder& ops, const LocalOp& op, const Exchange& e)
      : ops_(ops), b_(ops.builder()), e_(e), axes_(op.decision.operands[0]->dim(e.dim)) {}

  // x with copies of the operand's first row before it, and of its last row behind it.
  InstrId WithCopies(InstrId x) {
    x = b_.Select(Before(x, 0), Copies(x, 0), x);
    return b_.Select(Before(x, e_.ranges.extent), x, Copies(x, e_.ranges.extent - 1));
  }

  // x with the rows of copies added to that which they are copies of.
  InstrId WithCopiesAdded(InstrId x, Opcode monoid, InstrId identity) {
    const int64_t end = e_.ranges.extent;
    const InstrId none = b_.BroadcastScalar(identity, b_.shape(x));
    const InstrId low = b_.Select(Before(x, 0), x, none);
    const InstrId high = b_.Select(Before(x, end), none, x);
    x = b_.Binary(monoid, x, b_.Select(IsRow(x, 0), Sum(low, monoid, identity), none));
    return b_.Binary(monoid, x, b_.Select(IsRow(x, end - 1), Sum(high, monoid, identity), none));
  }

 private:
  InstrId Constant(int64_t v, InstrId like) {
    return b_.BroadcastScalar(b_.ConstantInt(ElementType::kS32, v), b_.shape(like));
  }
  // The row of the operand that each element is in.
  InstrId Rows(InstrId x) { return PlacesOf(ops_.emitter(), x, e_.dim, axes_, e_.ranges); }
  InstrId Before(InstrId x, int64_t row) {
    const InstrId rows = Rows(x);
    return b_.Compare(Direction::kLt, rows, Constant(row, rows));
  }
  InstrId IsRow(InstrId x, int64_t row) {
    const InstrId rows = Rows(x);
    return b_.Compare(Direction::kEq, rows, Constant(row, rows));
  }
  // Row `row` of the operand, or any other one where this shard lacks it, in each row.
  InstrId Copies(InstrId x, int64_t row) {
    const Shape* shape = b_.shape(x);
    std::vector<int64_t> at, sizes(shape->dims().begin(), shape->dims().end());
    for (int64_t i = 0; i < e_.ranges.num_shards; ++i) {
      at.push_back(std::clamp<int64_t>(row - e_.ranges.Start(i), 0, sizes[e_.dim] - 1));
    }
    std::vector<InstrId> starts(sizes.size(), b_.Zero(ElementType::kS32));
    starts[e_.dim] = ops_.emitter().OfShard(axes_, at);
    sizes[e_.dim] = 1;
    return Spread(b_.DynamicSlice(x, starts, sizes), shape);
  }
  InstrId Sum(InstrId x, Opcode monoid, InstrId identity) {
    return Spread(b_.Reduce(x, identity, {e_.dim}, monoid), b_.shape(x));
  }
  // One row, with its dimension or without it, in each row of a shape.
  InstrId Spread(InstrId row, const Shape* shape) {
    std::vector<int64_t> sizes, others;
    for (int d = 0; d < shape->rank(); ++d) {
      if (d == e_.dim) continue;
      others.push_back(d);
      sizes.push_back(shape->dim(d));
    }
    return b_.Broadcast(b_.Reshape(row, sizes), shape->dims(), others);
  }

  OpBuilder& ops_;
  GraphBuilder& b_;
  const Exchange& e_;
  const absl::Span<const AxisRef> axes_;
};

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  if (op.decision.exchanges.empty()) return ops.Clone(op, op.operands);
  GraphBuilder& b = ops.builder();
  SelectAndScatterAttrs attrs = op.instr.as<SelectAndScatterAttrs>();
  Opcode monoid;
  SHARDCALL_CHECK(RecognizeMonoid(ops.global(), attrs.scatter, &monoid));
  const InstrId identity = b.Identity(monoid, b.type(op.operands[1]), ZeroSign::kExact);
  InstrId x = op.operands[0];
  ChangedWindow window(attrs.window);
  std::vector<EdgeRows> edges;
  std::vector<InstrId> starts(op.instr.shape->rank(), b.Zero(ElementType::kS32));
  for (const Exchange& e : op.decision.exchanges) {
    if (e.operand != 0) continue;
    std::vector<int64_t> before;  // rows of what was computed that come before the tile
    for (int64_t i = 0; i < e.ranges.num_shards; ++i) {
      before.push_back(e.ranges.tile * i - e.ranges.Start(i));
    }
    starts[e.dim] = ops.emitter().OfShard(op.decision.operands[0]->dim(e.dim), before);
    if (!IsPadded(op.instr.as<SelectAndScatterAttrs>().window, e.dim)) continue;
    window.SetPadding(e.dim, {});
    edges.emplace_back(ops, op, e);
    x = edges.back().WithCopies(x);
  }
  attrs.window = window.window();
  attrs.select = ops.CopyComputation(attrs.select);
  attrs.scatter = ops.CopyComputation(attrs.scatter);
  const InstrId init = edges.empty() ? op.operands[2] : identity;
  InstrId rows = b.Add(Opcode::kSelectAndScatter, {x, FilledOutside(ops, op, 1, identity), init},
                       InternAttributes(ops.context(), attrs));
  for (EdgeRows& e : edges) rows = e.WithCopiesAdded(rows, monoid, identity);
  const InstrId tile = b.DynamicSlice(rows, starts, op.result_shapes[0]->dims());
  if (edges.empty()) return {tile};
  return {b.Binary(monoid, tile, b.BroadcastScalar(op.operands[2], b.shape(tile)))};
}

}  // namespace

constexpr Strategy kSelectAndScatterStrategy{.name = "halo exchange of scattered windows",
                                             .crosses = HasDimInFirst,
                                             .complete = Complete,
                                             .emit = Emit};

}  // namespace internal
}  // namespace shardcall
