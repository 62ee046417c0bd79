// SPDX-License-Identifier: Apache-2.0
// Reverse along a sharded dimension: each device fetches the range that mirrors its tile, and
// reverses it.
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/fetch_specs.h"
#include "shardcall/partitioner/spmd/strategies/fetched.h"
#include "shardcall/sharding/reshard/reshard.h"

namespace shardcall::inline internal {
namespace {

bool Accepts(const Module&, const Instruction&, int) { return true; }

double Bytes(const Module& module, const Instruction& instr, const Decision& d) {
  const Shape* in = module.instr(module.operands(instr)[0]).shape;
  const Sharding& s = *d.operands[0];
  double bytes = 0;
  for (int64_t r : instr.as<DimensionsAttrs>().dimensions) {
    const int dim = static_cast<int>(r);
    if (!s.IsDimSharded(dim)) continue;
    bytes += FetchBytes(ReverseFetch(in, dim, s.num_shards(dim)), LocalBytes(in, s));
  }
  return bytes;
}

LocalIds Emit(Localizer& l, const LocalOp& op) {
  const Sharding& in = *op.decision.operands[0];
  InstrId x = op.operands[0];
  for (int64_t dim : op.instr.as<DimensionsAttrs>().dimensions) {
    const int d = static_cast<int>(dim);
    if (!in.IsDimSharded(d)) continue;
    x = FetchOperand(l, op, 0, x, d, in.dim(d),
                     ReverseFetch(op.operand_shapes[0], d, in.num_shards(d)));
  }
  return l.Clone(op, {x});
}

}  // namespace

constexpr Strategy kReverseStrategy{
    .name = "fetch to reverse", .accepts = Accepts, .bytes = Bytes, .emit = Emit};

}  // namespace shardcall::inline internal
