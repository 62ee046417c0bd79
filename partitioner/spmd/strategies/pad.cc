// SPDX-License-Identifier: Apache-2.0
// Pad without interior padding along sharded dimensions: each device fetches the elements of its
// tile of the result, and sets the others to the pad value.
#include <vector>

#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/fetch_specs.h"
#include "shardcall/partitioner/spmd/strategies/fetched.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall::inline internal {
namespace {

bool Accepts(const Module&, const Instruction& instr, int d) {
  return instr.as<PadAttrs>().interior[d] == 0;
}

double Bytes(const Module& module, const Instruction& instr, const Decision& d) {
  const Shape* in = module.instr(module.operands(instr)[0]).shape;
  const Sharding& s = *d.operands[0];
  double bytes = 0;
  const auto& attrs = instr.as<PadAttrs>();
  for (int dim = 0; dim < s.rank(); ++dim) {
    if (!s.IsDimSharded(dim) || (attrs.low[dim] == 0 && attrs.high[dim] == 0)) continue;
    bytes +=
        FetchBytes(PadFetch(attrs, in, instr.shape, dim, s.num_shards(dim)), LocalBytes(in, s));
  }
  return bytes;
}

LocalIds Emit(Localizer& l, const LocalOp& op) {
  GraphBuilder& b = l.builder();
  PadAttrs attrs = op.instr.as<PadAttrs>();
  const Sharding& in = *op.decision.operands[0];
  std::vector<int64_t> low(attrs.low.begin(), attrs.low.end());
  std::vector<int64_t> high(attrs.high.begin(), attrs.high.end());
  InstrId x = op.operands[0];
  std::vector<int> moved;
  for (int d = 0; d < in.rank(); ++d) {
    if (!in.IsDimSharded(d) || (low[d] == 0 && high[d] == 0)) continue;
    x = FetchOperand(l, op, 0, x, d, in.dim(d),
                     PadFetch(attrs, op.operand_shapes[0], op.instr.shape, d, in.num_shards(d)));
    low[d] = high[d] = 0;
    moved.push_back(d);
  }
  attrs.low = low;
  attrs.high = high;
  LocalIds out = l.Clone(op, {x, op.operands[1]}, InternAttributes(l.context(), attrs));
  for (int d : moved) {  // set the pad value outside of the operand
    const InstrId index = ResultIndex(l, op, out[0], d);
    const int64_t first = op.instr.as<PadAttrs>().low[d];
    const InstrId inside = b.Binary(
        Opcode::kAnd, b.Compare(Direction::kGe, index, Splat(b, first, index)),
        b.Compare(Direction::kLt, index, Splat(b, first + op.operand_shapes[0]->dim(d), index)));
    out[0] = b.Select(inside, out[0], b.BroadcastScalar(op.operands[1], b.shape(out[0])));
  }
  return out;
}

}  // namespace

constexpr Strategy kPadStrategy{
    .name = "fetch to pad", .accepts = Accepts, .bytes = Bytes, .emit = Emit};

}  // namespace shardcall::inline internal
