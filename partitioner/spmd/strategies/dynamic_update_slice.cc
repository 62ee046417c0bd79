// SPDX-License-Identifier: Apache-2.0
// Dynamic-update-slice into a sharded dimension: nothing is sent. Each device changes the rows of
// the update that fall into its shard. In such a dimension of size N, with an update of U rows and
// shards of T rows, of which this one starts at s:
//   first = clamp(0, start, N - U) - s     where the update begins, counted from the shard
//   place = clamp(0, first, T - W)         a window of W = min(U, T) rows that holds what falls in
//   row j of the window is row j + place - first of the update, if there is such a row, else it
//   stays as it is.
#include <algorithm>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/ir/build/clamped_starts.h"
#include "shardcall/partitioner/spmd/localize/exchange.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/indices.h"
#include "shardcall/partitioner/spmd/strategies/parts/rows.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

// Not where all starts are in one vector, as in legacy programs.
bool Crosses(const OpQuery& op, int f) {
  return DimOfFactor(*op.rule, 0, f) >= 0 && op.shapes.size() > 2 && op.shapes[2]->rank() == 0;
}

// The part of the update that the window of one sharded dimension shows.
class Window {
 public:
  Window(OpBuilder& ops, const LocalOp& op, int d)
      : b_(ops.builder()), dim_(d), update_rows_(op.operand_shapes[1]->dim(d)) {
    const Shape* global = op.operand_shapes[0];
    const int64_t shard_rows = b_.shape(op.operands[0])->dim(d);
    rows_ = std::min(update_rows_, shard_rows);
    const InstrId start =
        WideIndices(b_, ClampStart(b_, op.operands[2 + d], global->dim(d) - update_rows_));
    const InstrId tile = ops.emitter().TileStart(*op.decision.operands[0], global, d);
    first_ = b_.Binary(Opcode::kSubtract, start, b_.Convert(tile, b_.type(start)));
    place_ = ClampStart(b_, first_, shard_rows - rows_);
    if (update_rows_ > 1) shift_ = b_.Binary(Opcode::kSubtract, place_, first_);
  }

  InstrId place() const { return place_; }
  int dim() const { return dim_; }

  // The rows of `update` that belong to the window; others where it has none.
  InstrId Take(InstrId update) {
    if (update_rows_ == 1) return update;
    return ShiftedRows(b_, update, dim_, shift_, rows_);
  }

  // pred[], or pred[rows] of the window: where Take gives a row of the update.
  InstrId Mask() {
    if (update_rows_ == 1) return b_.Compare(Direction::kEq, place_, first_);
    return RowsInRange(b_, shift_, rows_, update_rows_);
  }

 private:
  GraphBuilder& b_;
  const int dim_;
  const int64_t update_rows_;
  int64_t rows_;
  InstrId first_, place_, shift_;
};

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  if (op.operand_shapes[1]->num_elements() == 0) return {op.operands[0]};
  GraphBuilder& b = ops.builder();
  const InstrId x = op.operands[0];
  absl::InlinedVector<Window, 2> windows;
  for (int d = 0; d < op.operand_shapes[0]->rank(); ++d) {
    if (!op.decision.operands[0]->IsDimSharded(d)) continue;
    // An update that is as long begins at the first row of every shard.
    if (op.operand_shapes[1]->dim(d) == op.operand_shapes[0]->dim(d)) continue;
    windows.emplace_back(ops, op, d);
  }
  if (windows.empty()) return ops.Clone(op, op.operands);
  InstrId update = op.operands[1];
  for (Window& w : windows) update = w.Take(update);
  LocalIds starts(op.operands.begin() + 2, op.operands.end());
  for (InstrId& start : starts) start = WideIndices(b, start);
  InstrId mask;
  for (Window& w : windows) {
    starts[w.dim()] = w.place();
    const InstrId part = w.Mask();
    absl::InlinedVector<int64_t, 1> dims;
    if (b.shape(part)->rank() == 1) dims.push_back(w.dim());
    const InstrId spread = b.Broadcast(part, b.shape(update)->dims(), dims);
    mask = mask.valid() ? b.Binary(Opcode::kAnd, mask, spread) : spread;
  }
  const InstrId old = b.DynamicSlice(x, starts, b.shape(update)->dims());
  LocalIds operands = {x, b.Select(mask, update, old)};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return ops.Clone(op, operands);
}

// Where the place of the update is known, its rows are exchanged: each shard of the result gets
// those that lie in it.
bool IsPlaced(const OpQuery& op, int d) { return op.shapes[1]->dim(d) != op.shapes[0]->dim(d); }

bool PlacedRule(const OpQuery& op, ShardingRule* rule) {
  if (op.places.empty() || op.shapes[1]->num_elements() == 0) return false;
  *rule = *op.rule;
  bool any = false;
  for (int d = 0; d < op.shapes[0]->rank(); ++d) {
    if (!IsPlaced(op, d)) continue;
    any = any || op.operands[1]->IsDimSharded(d);
    const int f = rule->operands[0].dims[d][0];
    rule->operands[1].dims[d] = {f};
    rule->extents.push_back({{1, f}, op.shapes[1]->dim(d)});
  }
  return any;
}

bool CrossesPlaced(const OpQuery&, int) { return true; }

bool CompletePlaced(const OpQuery& op, Candidate* c) {
  for (int d = 0; d < op.shapes[0]->rank(); ++d) {
    const Sharding& s = *c->operands[1];
    if (!IsPlaced(op, d) || !s.IsDimSharded(d)) continue;
    ShardRanges r = ShardRanges::Of(op.shapes[1]->dim(d), s.num_shards(d));
    r.step = r.length = CeilDiv(op.shapes[0]->dim(d), s.num_shards(d));
    r.offset = -op.places[d];
    c->exchanges.push_back({1, d, r});
  }
  return true;
}

// All rows of the shard are chosen from what was there and what has come.
double SecondsOfPlaced(const CostModel& cost, const Module&, const Instruction& instr,
                       const Decision& d) {
  return cost.MemorySeconds(3 * static_cast<double>(LocalBytes(instr.shape, *d.produced[0])));
}

LocalIds EmitPlaced(OpBuilder& ops, const LocalOp& op) {
  if (op.decision.exchanges.empty()) return ops.Clone(op, op.operands);
  GraphBuilder& b = ops.builder();
  const InstrId x = op.operands[0], update = op.operands[1];
  LocalIds starts(op.operands.begin() + 2, op.operands.end());
  InstrId mask;
  for (const Exchange& e : op.decision.exchanges) {
    starts[e.dim] = b.Zero(b.type(starts[e.dim]));
    if (!e.ranges.LeavesBounds()) continue;
    const InstrId place =
        PlacesOf(ops.emitter(), update, e.dim, op.decision.operands[1]->dim(e.dim), e.ranges);
    const auto splat = [&](int64_t v) {
      return b.BroadcastScalar(b.ConstantInt(ElementType::kS32, v), b.shape(place));
    };
    const InstrId inside = b.Binary(Opcode::kAnd, b.Compare(Direction::kGe, place, splat(0)),
                                    b.Compare(Direction::kLt, place, splat(e.ranges.extent)));
    mask = mask.valid() ? b.Binary(Opcode::kAnd, mask, inside) : inside;
  }
  LocalIds operands = op.operands;
  std::copy(starts.begin(), starts.end(), operands.begin() + 2);
  if (mask.valid()) {
    operands[1] = b.Select(mask, update, b.DynamicSlice(x, starts, b.shape(update)->dims()));
  }
  return ops.Clone(op, operands);
}

}  // namespace

constexpr Strategy kDynamicUpdateSliceStrategy{
    .name = "masked update", .crosses = Crosses, .emit = Emit};

constexpr Strategy kPlacedUpdateStrategy{.name = "halo exchange of an update",
                                         .rule = PlacedRule,
                                         .crosses = CrossesPlaced,
                                         .complete = CompletePlaced,
                                         .seconds = SecondsOfPlaced,
                                         .emit = EmitPlaced};

}  // namespace internal
}  // namespace shardcall
