// SPDX-License-Identifier: Apache-2.0
// Cumulative sums, products, maxima and the like (a reduce-window with a window as long as the
// dimension, padded on one side) along a sharded dimension, in three phases: each device
// accumulates its shard; the totals of all shards are gathered; each device combines those of the
// shards before it with what it has. (Blelloch, Prefix Sums and Their Applications, 1990, section
// 1.2.) A computation of the program's own (a cumulative log-sum-exp) is combined likewise, if it
// may be done in parts, from an initial value that changes nothing.
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/accumulated_dim.h"
#include "shardcall/partitioner/ir/analysis/identity_constant.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/rows.h"
#include "shardcall/partitioner/spmd/strategies/parts/sharded_window.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall {
inline namespace internal {
namespace {

// The op's rule, if it accumulates along a dimension.
bool Rule(const OpQuery& op, ShardingRule* rule) {
  const auto& attrs = op.instr().as<ReduceWindowAttrs>();
  if (op.shapes.size() != 2) return false;
  const int d = AccumulatedDim(attrs.window, op.shapes[0]);
  if (d < 0 || op.rule->operands[0].dims[d].size() != 1) return false;
  PartialOp known;
  const bool combines = RecognizePartialOp(op.module, attrs.to_apply, &known)
                            ? HasIdentity(known, op.shapes[0]->element_type())
                            : FactorOfDim(*op.rule, 0, d).kind == FactorKind::kPermutation;
  if (!combines) return false;
  *rule = *op.rule;
  return true;
}

bool Crosses(const OpQuery&, int) { return true; }

bool Complete(const OpQuery& op, Candidate* c) {
  const int d = AccumulatedDim(op.instr().as<ReduceWindowAttrs>().window, op.shapes[0]);
  const int64_t n = c->operands[0]->num_shards(d), tile = CeilDiv(op.shapes[0]->dim(d), n);
  if (n == 1) return true;
  // A row of elements smaller than a byte is sent in whole bytes.
  const Sharding& s = *c->operands[0];
  const int64_t row = CeilDiv(LocalBytes(op.shapes[0], s), tile);
  c->AddEmitted(op.module.context(), static_cast<double>((n - 1) * row), *s.mesh(), s.dim(d));
  return true;
}

// What an op accumulates with: a reduction that the engine knows, or a computation.
class Combiner {
 public:
  Combiner(OpBuilder& ops, const LocalOp& op)
      : b_(ops.builder()), init_(op.operands[1]), identity_(init_), start_(init_) {
    const CompId global = op.instr.as<ReduceWindowAttrs>().to_apply;
    computation_ = ops.CopyComputation(global);
    known_ = RecognizeMonoid(ops.global(), global, &monoid_);
    if (!known_) return;
    identity_ = b_.Identity(monoid_, b_.type(op.operands[0]), ZeroSign::kExact);
    // An initial value that is an identity may count on every device. It may be +0, beside which
    // the exact identity of a sum, -0, would give sums of -0 where one device has +0.
    if (IsIdentityConstant(ops.local(), init_, monoid_)) {
      start_ = identity_;
    } else {
      init_ = identity_;
    }
  }

  CompId computation() const { return computation_; }
  InstrId identity() const { return identity_; }
  InstrId shard_init() const { return init_; }  // from which each shard accumulates
  InstrId ReduceTotals(InstrId totals, int d) const {
    if (known_) return b_.Reduce(totals, start_, {d}, monoid_);
    const int64_t dims[] = {d};
    ReduceAttrs attrs;
    attrs.dimensions = dims;
    attrs.to_apply = computation_;
    return b_.Add(Opcode::kReduce, {totals, start_}, InternAttributes(b_.context(), attrs));
  }
  InstrId Combine(InstrId x, InstrId y) const {
    if (known_) return b_.Binary(monoid_, x, y);
    std::vector<int64_t> dims(b_.shape(x)->rank());
    absl::c_iota(dims, 0);
    ReduceAttrs attrs;
    attrs.dimensions = dims;
    attrs.to_apply = computation_;
    return b_.Add(Opcode::kMap, {x, y}, InternAttributes(b_.context(), attrs));
  }

 private:
  GraphBuilder& b_;
  InstrId init_, identity_, start_;
  CompId computation_;
  Opcode monoid_;
  bool known_;
};

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  GraphBuilder& b = ops.builder();
  ReduceWindowAttrs attrs = op.instr.as<ReduceWindowAttrs>();
  const Shape* global = op.operand_shapes[0];
  const Sharding& s = *op.decision.operands[0];
  const int d = AccumulatedDim(attrs.window, global);
  if (!s.IsDimSharded(d)) return ops.Clone(op, op.operands);
  const bool reverse = attrs.window.pad_high[d] > 0;
  const Combiner combiner(ops, op);
  const InstrId identity = combiner.identity();
  const InstrId x = ops.emitter().MaskPadding(op.operands[0], global, s, {d}, identity);
  const int64_t tile = b.shape(x)->dim(d);
  ChangedWindow window(attrs.window);
  window.SetSize(d, tile);
  ShardedWindow padding;
  (reverse ? padding.pad_high : padding.pad_low) = tile - 1;
  window.SetPadding(d, padding);
  attrs.window = window.window();
  attrs.to_apply = combiner.computation();
  const InstrId mine =
      ops.Clone(op, {x, combiner.shard_init()}, InternAttributes(ops.context(), attrs))[0];

  const int64_t last = reverse ? 0 : tile - 1;
  InstrId totals = ops.emitter().AllGather(Rows(b, mine, d, last, last + 1), d, s.dim(d));
  const InstrId shard = ops.emitter().Coordinate(s.mesh(), s.dim(d));
  const InstrId index = b.Iota(ElementType::kS32, b.shape(totals)->dims(), d);
  const InstrId before = b.Compare(reverse ? Direction::kGt : Direction::kLt, index,
                                   b.BroadcastScalar(shard, b.shape(index)));
  totals = b.Select(before, totals, b.BroadcastScalar(identity, b.shape(totals)));
  const InstrId start = combiner.ReduceTotals(totals, d);
  std::vector<int64_t> others;
  for (int k = 0; k < global->rank(); ++k) {
    if (k != d) others.push_back(k);
  }
  const InstrId spread = b.Broadcast(start, b.shape(mine)->dims(), others);
  return {reverse ? combiner.Combine(mine, spread) : combiner.Combine(spread, mine)};
}

}  // namespace

constexpr Strategy kCumulativeStrategy{.name = "totals of the shards before",
                                       .rule = Rule,
                                       .crosses = Crosses,
                                       .complete = Complete,
                                       .emit = Emit};

}  // namespace internal
}  // namespace shardcall
