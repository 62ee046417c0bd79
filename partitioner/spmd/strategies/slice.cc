// SPDX-License-Identifier: Apache-2.0
// Slice along a sharded dimension: each device fetches the elements that its tile of the result
// needs, and slices them locally.
#include <vector>

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
  const auto& attrs = instr.as<SliceAttrs>();
  for (int dim = 0; dim < s.rank(); ++dim) {
    if (!s.IsDimSharded(dim) || IsWholeSlice(attrs, in, dim)) continue;
    bytes +=
        FetchBytes(SliceFetch(attrs, in, instr.shape, dim, s.num_shards(dim)), LocalBytes(in, s));
  }
  return bytes;
}

LocalIds Emit(Localizer& l, const LocalOp& op) {
  GraphBuilder& b = l.builder();
  SliceAttrs attrs = op.instr.as<SliceAttrs>();
  const Sharding& in = *op.decision.operands[0];
  std::vector<int64_t> starts(attrs.starts.begin(), attrs.starts.end());
  std::vector<int64_t> limits(attrs.limits.begin(), attrs.limits.end());
  InstrId x = op.operands[0];
  for (int d = 0; d < in.rank(); ++d) {
    if (!in.IsDimSharded(d)) continue;
    if (!IsWholeSlice(attrs, op.operand_shapes[0], d)) {
      x = FetchOperand(
          l, op, 0, x, d, in.dim(d),
          SliceFetch(attrs, op.operand_shapes[0], op.instr.shape, d, in.num_shards(d)));
    }
    starts[d] = 0;
    limits[d] = b.shape(x)->dim(d);
  }
  attrs.starts = starts;
  attrs.limits = limits;
  return l.Clone(op, {x}, InternAttributes(l.context(), attrs));
}

}  // namespace

constexpr Strategy kSliceStrategy{
    .name = "fetch to slice", .accepts = Accepts, .bytes = Bytes, .emit = Emit};

}  // namespace shardcall::inline internal
