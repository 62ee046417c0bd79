// SPDX-License-Identifier: Apache-2.0
// Slice along a sharded dimension: each device gets the elements that its tile of the result needs,
// and slices them locally; or, for a result that is wanted whole, each takes those that it has, and
// the result is their sum.
#include <vector>

#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/exchanged.h"
#include "shardcall/partitioner/spmd/strategies/own_rows.h"

namespace shardcall::inline internal {
namespace {

bool IsWhole(const SliceAttrs& a, const Shape* in, int d) {
  return a.starts[d] == 0 && a.limits[d] == in->dim(d) && a.strides[d] == 1;
}

bool Complete(const OpQuery& op, Candidate* c) {
  const auto& attrs = op.instr().as<SliceAttrs>();
  const Shape *in = op.shapes[0], *out = op.result(0);
  for (int d = 0; d < in->rank(); ++d) {
    if (IsWhole(attrs, in, d) || !c->operands[0]->IsDimSharded(d)) continue;
    const int64_t n = c->operands[0]->num_shards(d);
    const int64_t tile = CeilDiv(out->dim(d), n);
    ShardRanges r = ShardRanges::Of(in->dim(d), n);
    r.step = tile * attrs.strides[d];
    r.offset = attrs.starts[d];
    r.length = (tile - 1) * attrs.strides[d] + 1;
    r.begin = attrs.starts[d];
    r.end = attrs.limits[d];
    c->exchanges.push_back({0, d, r});
  }
  return true;
}

LocalIds Emit(Localizer& l, const LocalOp& op) {
  SliceAttrs attrs = op.instr.as<SliceAttrs>();
  const Sharding& in = *op.decision.operands[0];
  std::vector<int64_t> starts(attrs.starts.begin(), attrs.starts.end());
  std::vector<int64_t> limits(attrs.limits.begin(), attrs.limits.end());
  for (int d = 0; d < in.rank(); ++d) {
    if (!in.IsDimSharded(d)) continue;
    starts[d] = 0;
    limits[d] = l.builder().shape(op.operands[0])->dim(d);
  }
  attrs.starts = starts;
  attrs.limits = limits;
  return l.Clone(op, op.operands, InternAttributes(l.context(), attrs));
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

LocalIds EmitSum(Localizer& l, const LocalOp& op) {
  GraphBuilder& b = l.builder();
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
  return {TakeOwnRows(l, cut, op.operand_shapes[0], in, rows)};
}

}  // namespace

constexpr Strategy kSliceStrategy{.name = "halo exchange of a slice",
                                  .crosses = HasDimInFirst,
                                  .complete = Complete,
                                  .emit = Emit};
constexpr Strategy kSliceSumStrategy{
    .name = "own rows of a slice", .rule = SumRule, .emit = EmitSum};

}  // namespace shardcall::inline internal
