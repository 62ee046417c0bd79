// SPDX-License-Identifier: Apache-2.0
// Cumulative sums, products, maxima and the like (a reduce-window with a window as long as the
// dimension, padded on one side) along a sharded dimension, in three phases: each device
// accumulates its shard; the totals of all shards are gathered; each device combines those of the
// shards before it with what it has. (Blelloch, Prefix Sums and Their Applications, 1990, section
// 1.2.)
#include <vector>

#include "shardcall/partitioner/ir/analysis/identity_constant.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/sharded_window.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

// The dimension along which the op accumulates, if that is all that it does; else -1. `reverse`:
// from the end.
int AccumulatedDim(const Window& w, const Shape* in, bool* reverse) {
  int found = -1;
  for (int d = 0; d < in->rank(); ++d) {
    const int64_t n = in->dim(d);
    if (w.stride[d] != 1 || w.lhs_dilate[d] != 1 || w.rhs_dilate[d] != 1) return -1;
    if (w.size[d] == 1 && w.pad_low[d] == 0 && w.pad_high[d] == 0) continue;
    const bool forward = w.pad_low[d] == n - 1 && w.pad_high[d] == 0;
    const bool backward = w.pad_low[d] == 0 && w.pad_high[d] == n - 1;
    if (found >= 0 || w.size[d] != n || !(forward || backward)) return -1;
    found = d;
    *reverse = backward;
  }
  return found;
}

// The op's rule, if it accumulates along a dimension.
bool Rule(const OpQuery& op, ShardingRule* rule) {
  const auto& attrs = op.instr().as<ReduceWindowAttrs>();
  PartialOp known;
  if (op.shapes.size() != 2 || !RecognizePartialOp(op.module, attrs.to_apply, &known) ||
      !HasIdentity(known, op.shapes[0]->element_type())) {
    return false;
  }
  bool reverse;
  const int d = AccumulatedDim(attrs.window, op.shapes[0], &reverse);
  if (d < 0 || op.rule->operands[0].dims[d].size() != 1) return false;
  *rule = *op.rule;
  return true;
}

bool Crosses(const OpQuery&, int) { return true; }

bool Complete(const OpQuery& op, Candidate* c) {
  bool reverse;
  const int d = AccumulatedDim(op.instr().as<ReduceWindowAttrs>().window, op.shapes[0], &reverse);
  const int64_t n = c->operands[0]->num_shards(d), tile = CeilDiv(op.shapes[0]->dim(d), n);
  if (n == 1) return true;
  // A row of elements smaller than a byte is sent in whole bytes.
  const Sharding& s = *c->operands[0];
  const int64_t row = CeilDiv(LocalBytes(op.shapes[0], s), tile);
  c->AddEmitted(op.module.context(), static_cast<double>((n - 1) * row), *s.mesh(), s.dim(d));
  return true;
}

// Rows [from, from + 1) of dimension d.
InstrId Row(GraphBuilder& b, InstrId x, int d, int64_t from) {
  const Shape* shape = b.shape(x);
  std::vector<int64_t> starts(shape->rank(), 0), limits(shape->dims().begin(), shape->dims().end());
  starts[d] = from;
  limits[d] = from + 1;
  return b.Slice(x, starts, limits);
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  GraphBuilder& b = ops.builder();
  ReduceWindowAttrs attrs = op.instr.as<ReduceWindowAttrs>();
  const Shape* global = op.operand_shapes[0];
  const Sharding& s = *op.decision.operands[0];
  Opcode monoid;
  SHARDCALL_CHECK(RecognizeMonoid(ops.global(), attrs.to_apply, &monoid));
  bool reverse = false;
  const int d = AccumulatedDim(attrs.window, global, &reverse);
  if (!s.IsDimSharded(d)) return ops.Clone(op, op.operands);
  const InstrId identity = b.Identity(monoid, b.type(op.operands[0]), ZeroSign::kExact);
  const InstrId x = ops.emitter().MaskPadding(op.operands[0], global, s, {d}, identity);
  const int64_t tile = b.shape(x)->dim(d);
  ChangedWindow window(attrs.window);
  window.SetSize(d, tile);
  ShardedWindow padding;
  (reverse ? padding.pad_high : padding.pad_low) = tile - 1;
  window.SetPadding(d, padding);
  attrs.window = window.window();
  attrs.to_apply = ops.CopyComputation(attrs.to_apply);
  // An initial value that is an identity may count on every device. It may be +0, beside which the
  // exact identity of a sum, -0, would give sums of -0 where one device has +0.
  const bool plain = IsIdentityConstant(ops.local(), op.operands[1], monoid);
  const InstrId mine = ops.Clone(op, {x, plain ? op.operands[1] : identity},
                                 InternAttributes(ops.context(), attrs))[0];

  InstrId totals = ops.emitter().AllGather(Row(b, mine, d, reverse ? 0 : tile - 1), d, s.dim(d));
  const InstrId shard = ops.emitter().Coordinate(s.mesh(), s.dim(d));
  const InstrId index = b.Iota(ElementType::kS32, b.shape(totals)->dims(), d);
  const InstrId before = b.Compare(reverse ? Direction::kGt : Direction::kLt, index,
                                   b.BroadcastScalar(shard, b.shape(index)));
  totals = b.Select(before, totals, b.BroadcastScalar(identity, b.shape(totals)));
  const InstrId start = b.Reduce(totals, plain ? identity : op.operands[1], {d}, monoid);
  std::vector<int64_t> others;
  for (int k = 0; k < global->rank(); ++k) {
    if (k != d) others.push_back(k);
  }
  const InstrId spread = b.Broadcast(start, b.shape(mine)->dims(), others);
  return {reverse ? b.Binary(monoid, mine, spread) : b.Binary(monoid, spread, mine)};
}

}  // namespace

constexpr Strategy kCumulativeStrategy{.name = "totals of the shards before",
                                       .rule = Rule,
                                       .crosses = Crosses,
                                       .complete = Complete,
                                       .emit = Emit};

}  // namespace internal
}  // namespace shardcall
