// SPDX-License-Identifier: Apache-2.0
// Pad along sharded dimensions: each device gets the elements that lie in its tile of the result,
// and pads them as the whole is padded there. With interior padding, tiles may begin at different
// distances from the next element; then each device pads for all of them, and cuts its tile out.
// Where the operand is a slice, what it was cut out of may be exchanged instead.
#include <optional>
#include <vector>

#include "shardcall/partitioner/spmd/localize/exchange.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/exchanged.h"
#include "shardcall/partitioner/spmd/strategies/parts/read_through.h"
#include "shardcall/partitioner/spmd/strategies/parts/sharded_window.h"

namespace shardcall {
inline namespace internal {
namespace {

bool IsPadded(const PadAttrs& a, int d) {
  return a.low[d] != 0 || a.high[d] != 0 || a.interior[d] != 0;
}

std::optional<ShardedWindow> WindowOf(const PadAttrs& a, const Shape* in, const Shape* out, int d,
                                      int64_t shards) {
  const int64_t tile = CeilDiv(out->dim(d), shards);
  return WindowOfDilated(a.low[d], a.interior[d] + 1, in->dim(d), shards, tile, tile, true);
}

bool Complete(const OpQuery& op, Candidate* c) {
  const auto& attrs = op.instr().as<PadAttrs>();
  for (int d = 0; d < op.shapes[0]->rank(); ++d) {
    if (!IsPadded(attrs, d) || !c->operands[0]->IsDimSharded(d)) continue;
    const auto window =
        WindowOf(attrs, op.shapes[0], op.result(0), d, c->operands[0]->num_shards(d));
    if (!window.has_value()) return false;
    c->exchanges.push_back({0, d, window->ranges});
  }
  return true;
}

// A pad whose exchanged dimensions have other edges.
struct ChangedPad {
  explicit ChangedPad(const PadAttrs& a)
      : attrs(a), low(a.low.begin(), a.low.end()), high(a.high.begin(), a.high.end()) {}
  const Attributes* Intern(OpBuilder& ops) {
    attrs.low = low;
    attrs.high = high;
    return InternAttributes(ops.context(), attrs);
  }
  PadAttrs attrs;
  std::vector<int64_t> low, high;
};

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  ChangedPad pad(op.instr.as<PadAttrs>());
  absl::InlinedVector<Surplus, 2> surplus;
  for (const Exchange& e : op.decision.exchanges) {
    const ShardedWindow window =
        *WindowOf(pad.attrs, op.operand_shapes[0], op.instr.shape, e.dim, e.ranges.num_shards);
    pad.low[e.dim] = window.pad_low;
    pad.high[e.dim] = window.pad_high;
    if (window.surplus == 0) continue;
    surplus.push_back({e.dim, window.surplus, op.decision.operands[0]->dim(e.dim), window.begins});
  }
  const InstrId x = FilledOutside(ops, op, 0, op.operands[1]);
  return CloneAndCut(ops, op, {x, op.operands[1]}, pad.Intern(ops), surplus);
}

// The dimension along which the source of the operand, a slice, is exchanged; or -1.
int DimThrough(const PadAttrs& attrs, const Source& source, const Shape* in,
               const Sharding* result) {
  if (source.opcode != Opcode::kSlice) return -1;  // another pad may have another value
  const int d = DimReadAlong(source, in, result, [&](int k) { return IsPadded(attrs, k); });
  return d >= 0 && attrs.interior[d] == 0 ? d : -1;
}

ShardRanges RangesThrough(const PadAttrs& attrs, const Source& source, const Shape* in,
                          const Shape* out, int d, int64_t shards) {
  return RangesOfSource(source, d, WindowOf(attrs, in, out, d, shards)->ranges);
}

bool CompleteThrough(const OpQuery& op, Candidate* c) {
  const auto& attrs = op.instr().as<PadAttrs>();
  const Source& source = op.sources[0];
  const int d = DimThrough(attrs, source, op.shapes[0], c->produced[0]);
  if (d < 0) return false;
  const ShardRanges ranges =
      RangesThrough(attrs, source, op.shapes[0], op.result(0), d, c->produced[0]->num_shards(d));
  AddReadThrough(op.module.context(), source, d, ranges, c);
  return true;
}

LocalIds EmitThrough(OpBuilder& ops, const LocalOp& op) {
  ChangedPad pad(op.instr.as<PadAttrs>());
  const Shape* in = op.operand_shapes[0];
  const Sharding* result = op.decision.produced[0];
  const Source& source = op.sources[0].source;
  const int d = DimThrough(pad.attrs, source, in, result);
  const ShardRanges r =
      RangesThrough(pad.attrs, source, in, op.instr.shape, d, result->num_shards(d));
  InstrId x = ReadThrough(ops, op.sources[0], d, r);
  x = FillOutside(ops.emitter(), x, d, result->dim(d), r, op.operands[1]);
  pad.low[d] = pad.high[d] = 0;
  return ops.Clone(op, {x, op.operands[1]}, pad.Intern(ops));
}

}  // namespace

constexpr Strategy kPadStrategy{
    .name = "halo exchange of a pad", .crosses = HasDimInFirst, .complete = Complete, .emit = Emit};

constexpr Strategy kPadThroughStrategy{.name = "halo exchange of what is padded",
                                       .rule = HasSource,
                                       .crosses = HasDimInFirst,
                                       .complete = CompleteThrough,
                                       .reads_sources = true,
                                       .emit = EmitThrough};

}  // namespace internal
}  // namespace shardcall
