// SPDX-License-Identifier: Apache-2.0
// Dynamic-slice. Where a sharded dimension is taken whole, only the sizes change: its index is
// clamped to 0 on any shard. Of another one each device takes the rows that it has, and the result
// is their sum.
#include <vector>

#include "shardcall/partitioner/ir/build/clamped_starts.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/indices.h"
#include "shardcall/partitioner/spmd/strategies/parts/own_rows.h"

namespace shardcall {
inline namespace internal {
namespace {

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  GraphBuilder& b = ops.builder();
  const Shape* global = op.operand_shapes[0];
  const Sharding& s = *op.decision.operands[0];
  DynamicSliceAttrs attrs;
  attrs.sizes = op.result_shapes[0]->dims();
  absl::InlinedVector<RowsOfDim, 2> rows;
  std::vector<int64_t> sizes(attrs.sizes.begin(), attrs.sizes.end());
  LocalIds operands = op.operands;
  for (int d = 0; d < global->rank(); ++d) {
    const int64_t size = op.instr.as<DynamicSliceAttrs>().sizes[d];
    if (!s.IsDimSharded(d) || size == global->dim(d)) continue;
    rows.push_back(
        {d, WideIndices(b, ClampStart(b, op.operands[1 + d], global->dim(d) - size)), size});
    sizes[d] = b.shape(op.operands[0])->dim(d);
    operands[1 + d] = b.Zero(b.type(operands[1 + d]));
  }
  if (rows.empty()) return ops.Clone(op, operands, InternAttributes(ops.context(), attrs));
  InstrId x = op.operands[0];
  if (absl::MakeConstSpan(sizes) != b.shape(x)->dims()) {  // cut the other dimensions first
    x = b.DynamicSlice(x, absl::MakeConstSpan(operands).subspan(1), sizes);
  }
  return {TakeOwnRows(ops, x, global, s, rows)};
}

}  // namespace

constexpr Strategy kDynamicSliceStrategy{.name = "own rows of a window", .emit = Emit};

}  // namespace internal
}  // namespace shardcall
