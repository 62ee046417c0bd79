// SPDX-License-Identifier: Apache-2.0
// Slice along a sharded dimension: each device gets the elements that its tile of the result needs,
// and slices them locally; where strides divide the shards, it slices first, so that nothing is
// sent that lies between. Or, for a result that is wanted whole, each takes those that it has, and
// the result is their sum.
#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/spmd/localize/exchange.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/exchanged.h"
#include "shardcall/partitioner/spmd/strategies/parts/own_rows.h"
#include "shardcall/partitioner/spmd/strategies/parts/read_through.h"

namespace shardcall {
inline namespace internal {
namespace {

bool IsWhole(const SliceAttrs& a, const Shape* in, int d) {
  return a.starts[d] == 0 && a.limits[d] == in->dim(d) && a.strides[d] == 1;
}

// The rows that each shard cuts its tile of the result out of.
ShardRanges RangesOf(const SliceAttrs& attrs, const Shape* in, const Shape* out, int d,
                     int64_t shards) {
  const int64_t tile = CeilDiv(out->dim(d), shards);
  ShardRanges r = ShardRanges::Of(in->dim(d), shards);
  r.step = tile * attrs.strides[d];
  r.offset = attrs.starts[d];
  r.length = (tile - 1) * attrs.strides[d] + 1;
  r.begin = attrs.starts[d];
  r.end = attrs.limits[d];
  return r;
}

bool Complete(const OpQuery& op, Candidate* c) {
  const auto& attrs = op.instr().as<SliceAttrs>();
  const Shape* in = op.shapes[0];
  for (int d = 0; d < in->rank(); ++d) {
    if (IsWhole(attrs, in, d) || !c->operands[0]->IsDimSharded(d)) continue;
    const int64_t n = c->operands[0]->num_shards(d);
    c->exchanges.push_back({0, d, RangesOf(attrs, in, op.result(0), d, n)});
  }
  return true;
}

// Of a slice of a pad, which takes nothing that is padded: a slice of what is padded. The first or
// last rows of a sort are padded so (lines/ends_of_line.cc).
InstrId WithoutPadding(const Module& m, InstrId x, std::vector<int64_t>* starts,
                       std::vector<int64_t>* limits) {
  if (m.instr(x).opcode != Opcode::kPad) return x;
  const auto& pad = m.instr(x).as<PadAttrs>();
  const Shape* const inside = m.instr(m.operand(x, 0)).shape;
  for (int d = 0; d < inside->rank(); ++d) {
    if (pad.interior[d] != 0 || (*starts)[d] < pad.low[d] ||
        (*limits)[d] > pad.low[d] + inside->dim(d)) {
      return x;
    }
  }
  for (int d = 0; d < inside->rank(); ++d) {
    (*starts)[d] -= pad.low[d];
    (*limits)[d] -= pad.low[d];
  }
  return m.operand(x, 0);
}

// Cuts this device's tile of the result out of the rows that it has got along sharded dimensions.
LocalIds Cut(OpBuilder& ops, const LocalOp& op, InstrId rows) {
  SliceAttrs attrs = op.instr.as<SliceAttrs>();
  std::vector<int64_t> starts(attrs.starts.begin(), attrs.starts.end());
  std::vector<int64_t> limits(attrs.limits.begin(), attrs.limits.end());
  for (int d = 0; d < op.instr.shape->rank(); ++d) {
    if (!op.decision.produced[0]->IsDimSharded(d)) continue;
    starts[d] = 0;
    limits[d] = ops.builder().shape(rows)->dim(d);
  }
  rows = WithoutPadding(ops.local(), rows, &starts, &limits);
  attrs.starts = starts;
  attrs.limits = limits;
  return ops.Clone(op, {rows}, InternAttributes(ops.context(), attrs));
}

LocalIds Emit(OpBuilder& ops, const LocalOp& op) { return Cut(ops, op, op.operands[0]); }

// The ranges among those rows of dimension d that are whole strides away from the first one taken.
// The stride divides the shards.
ShardRanges RangesOfStrided(const SliceAttrs& attrs, const Shape* in, const Shape* out, int d,
                            int64_t shards) {
  const int64_t stride = attrs.strides[d], phase = attrs.starts[d] % stride;
  ShardRanges r =
      ShardRanges::Of(CeilDiv(std::max<int64_t>(in->dim(d) - phase, 0), stride), shards);
  r.tile = CeilDiv(in->dim(d), shards) / stride;
  r.step = r.length = CeilDiv(out->dim(d), shards);
  r.offset = r.begin = attrs.starts[d] / stride;
  r.end = r.begin + out->dim(d);
  return r;
}

// Along all sharded dimensions of which a part is taken. None if strides divide no shard of these,
// or not all.
Exchanges ExchangesOfStrided(const SliceAttrs& attrs, const Shape* in, const Shape* out,
                             const Sharding& s) {
  Exchanges all;
  bool strided = false;
  for (int d = 0; d < in->rank(); ++d) {
    if (IsWhole(attrs, in, d) || !s.IsDimSharded(d)) continue;
    if (CeilDiv(in->dim(d), s.num_shards(d)) % attrs.strides[d] != 0) return {};
    all.push_back({0, d, RangesOfStrided(attrs, in, out, d, s.num_shards(d))});
    strided = strided || attrs.strides[d] > 1;
  }
  if (!strided) return {};
  PutInOrder(&all);
  return all;
}

bool StridedRule(const OpQuery& op, ShardingRule* rule) {
  *rule = *op.rule;
  return op.result(0)->num_elements() > 0 &&
         absl::c_any_of(op.instr().as<SliceAttrs>().strides, [](int64_t s) { return s > 1; });
}

bool CompleteStrided(const OpQuery& op, Candidate* c) {
  const auto& attrs = op.instr().as<SliceAttrs>();
  const Sharding& s = *c->operands[0];
  const Exchanges exchanges = ExchangesOfStrided(attrs, op.shapes[0], op.result(0), s);
  if (exchanges.empty()) return false;
  // Of the rows, as they are sent first; all other dimensions are as in the result.
  auto bits = static_cast<double>(LocalBits(op.result(0), *c->produced[0]));
  for (const Exchange& e : exchanges) {
    bits *= static_cast<double>(e.ranges.tile) / static_cast<double>(e.ranges.length);
  }
  for (const auto& [operand, d, r] : exchanges) {
    const double row = bits / static_cast<double>(r.tile);
    AddEmittedExchange(op.module.context(), r, row, s, d, c);
    bits = row * static_cast<double>(r.length);
  }
  return true;
}

LocalIds EmitStrided(OpBuilder& ops, const LocalOp& op) {
  const auto& attrs = op.instr.as<SliceAttrs>();
  const Sharding& s = *op.decision.operands[0];
  const Shape* const in = op.operand_shapes[0];
  std::vector<int64_t> starts(attrs.starts.begin(), attrs.starts.end());
  std::vector<int64_t> limits(attrs.limits.begin(), attrs.limits.end());
  for (int k = 0; k < in->rank(); ++k) {
    if (!s.IsDimSharded(k)) continue;
    starts[k] = attrs.starts[k] % attrs.strides[k];
    limits[k] = ops.builder().shape(op.operands[0])->dim(k);
  }
  InstrId x = ops.builder().Slice(op.operands[0], starts, limits, attrs.strides);
  for (const Exchange& e : ExchangesOfStrided(attrs, in, op.instr.shape, s)) {
    x = EmitExchange(ops.emitter(), x, e.dim, s.dim(e.dim), e.ranges);
  }
  return {x};
}

// The operand is a pad or a slice, and its source is exchanged.
int DimThrough(const SliceAttrs& attrs, const Source& source, const Shape* in,
               const Sharding* result) {
  return DimReadAlong(source, in, result, [&](int d) { return !IsWhole(attrs, in, d); });
}

bool CompleteThrough(const OpQuery& op, Candidate* c) {
  const auto& attrs = op.instr().as<SliceAttrs>();
  const Source& source = op.sources[0];
  const int d = DimThrough(attrs, source, op.shapes[0], c->produced[0]);
  if (d < 0) return false;
  const ShardRanges rows =
      RangesOf(attrs, op.shapes[0], op.result(0), d, c->produced[0]->num_shards(d));
  AddReadThrough(op.module.context(), source, d, RangesOfSource(source, d, rows), c);
  return true;
}

LocalIds EmitThrough(OpBuilder& ops, const LocalOp& op) {
  const auto& attrs = op.instr.as<SliceAttrs>();
  const Shape* in = op.operand_shapes[0];
  const Sharding* result = op.decision.produced[0];
  const Source& source = op.sources[0].source;
  const int d = DimThrough(attrs, source, in, result);
  const ShardRanges rows = RangesOf(attrs, in, op.instr.shape, d, result->num_shards(d));
  return Cut(ops, op, ReadThrough(ops, op.sources[0], d, RangesOfSource(source, d, rows)));
}

// Dimensions of which a part is taken, without strides, are reduction factors of the operand alone.
bool SumRule(const OpQuery& op, ShardingRule* rule) {
  const auto& attrs = op.instr().as<SliceAttrs>();
  *rule = *op.rule;
  bool any = false;
  for (int d = 0; d < op.shapes[0]->rank(); ++d) {
    if (attrs.strides[d] != 1 || attrs.limits[d] == attrs.starts[d]) continue;
    if (!IsWhole(attrs, op.shapes[0], d)) any = SumOverDim(op, 0, d, 0, d, rule) || any;
  }
  return any;
}

LocalIds EmitSum(OpBuilder& ops, const LocalOp& op) {
  GraphBuilder& b = ops.builder();
  const auto& attrs = op.instr.as<SliceAttrs>();
  const Sharding& in = *op.decision.operands[0];
  std::vector<int64_t> starts(attrs.starts.begin(), attrs.starts.end());
  std::vector<int64_t> limits(attrs.limits.begin(), attrs.limits.end());
  absl::InlinedVector<RowsOfDim, 2> rows;
  for (int d = 0; d < in.rank(); ++d) {
    if (!in.IsDimSharded(d)) continue;
    if (!IsWhole(attrs, op.operand_shapes[0], d)) {
      rows.push_back({d, b.ConstantInt(ElementType::kS64, starts[d]), limits[d] - starts[d]});
    }
    starts[d] = 0;
    limits[d] = b.shape(op.operands[0])->dim(d);
  }
  const InstrId cut = b.Slice(op.operands[0], starts, limits, attrs.strides);
  if (rows.empty()) return {cut};
  return {TakeOwnRows(ops, cut, op.operand_shapes[0], in, rows)};
}

}  // namespace

constexpr Strategy kSliceStrategy{.name = "halo exchange of a slice",
                                  .crosses = HasDimInFirst,
                                  .complete = Complete,
                                  .emit = Emit};
constexpr Strategy kSliceStridedStrategy{.name = "halo exchange of strided rows",
                                         .rule = StridedRule,
                                         .crosses = HasDimInFirst,
                                         .complete = CompleteStrided,
                                         .emit = EmitStrided};
constexpr Strategy kSliceSumStrategy{
    .name = "own rows of a slice", .rule = SumRule, .emit = EmitSum};
constexpr Strategy kSliceThroughStrategy{.name = "halo exchange of what is sliced",
                                         .rule = HasSource,
                                         .crosses = HasDimInFirst,
                                         .complete = CompleteThrough,
                                         .reads_sources = true,
                                         .emit = EmitThrough};

}  // namespace internal
}  // namespace shardcall
