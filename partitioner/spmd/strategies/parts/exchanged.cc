// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/parts/exchanged.h"

#include "shardcall/partitioner/spmd/localize/exchange.h"

namespace shardcall {
inline namespace internal {

bool HasDimInFirst(const OpQuery& op, int f) { return DimOfFactor(*op.rule, 0, f) >= 0; }

InstrId FilledOutside(OpBuilder& ops, const LocalOp& op, int k, InstrId fill) {
  InstrId x = op.operands[k];
  for (const Exchange& e : op.decision.exchanges) {
    if (e.operand != k) continue;
    x = FillOutside(ops.emitter(), x, e.dim, op.decision.operands[k]->dim(e.dim), e.ranges, fill);
  }
  return x;
}

LocalIds CloneAndCut(OpBuilder& ops, const LocalOp& op, absl::Span<const InstrId> operands,
                     const Attributes* attrs, absl::Span<const Surplus> surplus) {
  if (surplus.empty()) return ops.Clone(op, operands, attrs);
  GraphBuilder& b = ops.builder();
  LocalOp larger = op;
  for (const Shape*& shape : larger.result_shapes) {
    std::vector<int64_t> dims(shape->dims().begin(), shape->dims().end());
    for (const Surplus& s : surplus) dims[s.dim] += s.size;
    shape = ops.context().WithDims(shape, dims);
  }
  LocalIds results = ops.Clone(larger, operands, attrs);
  for (size_t k = 0; k < results.size(); ++k) {
    std::vector<InstrId> starts(op.result_shapes[k]->rank(), b.Zero(ElementType::kS32));
    for (const Surplus& s : surplus) starts[s.dim] = ops.emitter().OfShard(s.axes, s.begins);
    results[k] = b.DynamicSlice(results[k], starts, op.result_shapes[k]->dims());
  }
  return results;
}

}  // namespace internal
}  // namespace shardcall
