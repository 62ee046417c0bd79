// SPDX-License-Identifier: Apache-2.0
// Slice, pad, concatenate and reverse: along a sharded dimension each device
// fetches what its tile of the result is made of, and cuts, masks or reverses
// that locally.
#include <algorithm>
#include <vector>

#include "shardcall/partitioner/spmd/strategies/fetch.h"
#include "shardcall/partitioner/spmd/strategies/fetch_specs.h"
#include "shardcall/partitioner/spmd/localize/localizer.h"

namespace shardcall {
namespace {

// Index of the result element, along `dim`, as an array of the shape of `like`.
InstrId ResultIndex(Localizer& l, const LocalOp& op, InstrId like, int dim) {
  GraphBuilder& b = l.builder();
  const InstrId start = l.emitter().TileStart(*op.decision.produced[0], op.instr.shape, dim);
  const InstrId index = b.Iota(ElementType::kS32, b.shape(like)->dims(), dim);
  return b.Binary(Opcode::kAdd, index, b.BroadcastScalar(start, b.shape(index)));
}

// EmitFetch of operand k of the op, or of what it became.
InstrId Fetch(Localizer& l, const LocalOp& op, int k, InstrId x, int dim,
              absl::Span<const AxisRef> axes, const FetchSpec& spec) {
  l.emitter().set_cause({CollectiveCause::Kind::kOperand, op.id, k});
  return EmitFetch(l.emitter(), x, dim, axes, spec);
}

InstrId Splat(GraphBuilder& b, int64_t value, InstrId like) {
  return b.BroadcastScalar(b.ConstantInt(ElementType::kS32, value), b.shape(like));
}

}  // namespace

LocalIds HandleSlice(Localizer& l, const LocalOp& op) {
  GraphBuilder& b = l.builder();
  SliceAttrs attrs = op.instr.as<SliceAttrs>();
  const Sharding& in = *op.decision.operands[0];
  std::vector<int64_t> starts(attrs.starts.begin(), attrs.starts.end());
  std::vector<int64_t> limits(attrs.limits.begin(), attrs.limits.end());
  InstrId x = op.operands[0];
  for (int d = 0; d < in.rank(); ++d) {
    if (!in.IsDimSharded(d)) continue;
    if (!IsWholeSlice(attrs, op.operand_shapes[0], d)) {
      x = Fetch(l, op, 0, x, d, in.dim(d),
                SliceFetch(attrs, op.operand_shapes[0], op.instr.shape, d, in.num_shards(d)));
    }
    starts[d] = 0;
    limits[d] = b.shape(x)->dim(d);
  }
  attrs.starts = starts;
  attrs.limits = limits;
  return l.Clone(op, {x}, InternAttributes(l.context(), attrs));
}

LocalIds HandlePad(Localizer& l, const LocalOp& op) {
  GraphBuilder& b = l.builder();
  PadAttrs attrs = op.instr.as<PadAttrs>();
  const Sharding& in = *op.decision.operands[0];
  std::vector<int64_t> low(attrs.low.begin(), attrs.low.end());
  std::vector<int64_t> high(attrs.high.begin(), attrs.high.end());
  InstrId x = op.operands[0];
  std::vector<int> moved;
  for (int d = 0; d < in.rank(); ++d) {
    if (!in.IsDimSharded(d) || (low[d] == 0 && high[d] == 0)) continue;
    x = Fetch(l, op, 0, x, d, in.dim(d),
              PadFetch(attrs, op.operand_shapes[0], op.instr.shape, d, in.num_shards(d)));
    low[d] = high[d] = 0;
    moved.push_back(d);
  }
  attrs.low = low;
  attrs.high = high;
  LocalIds out = l.Clone(op, {x, op.operands[1]}, InternAttributes(l.context(), attrs));
  for (int d : moved) {  // the pad value outside of the operand
    const InstrId index = ResultIndex(l, op, out[0], d);
    const int64_t first = op.instr.as<PadAttrs>().low[d];
    const InstrId inside = b.Binary(
        Opcode::kAnd, b.Compare(Direction::kGe, index, Splat(b, first, index)),
        b.Compare(Direction::kLt, index, Splat(b, first + op.operand_shapes[0]->dim(d), index)));
    out[0] = b.Select(inside, out[0], b.BroadcastScalar(op.operands[1], b.shape(out[0])));
  }
  return out;
}

LocalIds HandleConcatenate(Localizer& l, const LocalOp& op) {
  GraphBuilder& b = l.builder();
  const int d = static_cast<int>(op.instr.as<DimensionsAttrs>().dimensions[0]);
  const Sharding* out = op.decision.produced[0];
  if (!out->IsDimSharded(d)) return l.Clone(op, op.operands);
  const int64_t n = out->num_shards(d);
  InstrId result, index;
  int64_t offset = 0;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const InstrId part =
        Fetch(l, op, static_cast<int>(k), op.operands[k], d, out->dim(d),
              ConcatenateFetch(op.operand_shapes[k], op.instr.shape, d, n, offset));
    if (k == 0) {
      result = part;
      index = ResultIndex(l, op, part, d);
    } else {
      result = b.Select(b.Compare(Direction::kLt, index, Splat(b, offset, index)), result, part);
    }
    offset += op.operand_shapes[k]->dim(d);
  }
  return {result};
}

LocalIds HandleReverse(Localizer& l, const LocalOp& op) {
  const Sharding& in = *op.decision.operands[0];
  InstrId x = op.operands[0];
  for (int64_t dim : op.instr.as<DimensionsAttrs>().dimensions) {
    const int d = static_cast<int>(dim);
    if (!in.IsDimSharded(d)) continue;
    x = Fetch(l, op, 0, x, d, in.dim(d),
              ReverseFetch(op.operand_shapes[0], d, in.num_shards(d)));
  }
  return l.Clone(op, {x});
}

}  // namespace shardcall
