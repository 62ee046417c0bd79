// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/parts/products.h"

#include <vector>

#include "shardcall/partitioner/ir/shapes/instruction_cost.h"
#include "shardcall/partitioner/spmd/strategies/parts/masked.h"

namespace shardcall {
inline namespace internal {

double SecondsOfProducts(const CostModel& cost, const Module& module, const Instruction& instr,
                         const Decision& d) {
  double shards = 1;
  for (absl::Span<const AxisRef> a : d.factor_axes) shards *= static_cast<double>(AxesSize(a));
  return cost.ProductSeconds(ProductsOf(module, instr) / shards);
}

void MaskContracted(OpBuilder& ops, const LocalOp& op, LocalIds* operands) {
  GraphBuilder& b = ops.builder();
  for (int t = 0; t < 2; ++t) {
    std::vector<int> dims = UnevenReduced(op, t);
    for (const Exchange& e : op.decision.exchanges) {
      if (e.operand == t) std::erase(dims, e.dim);
    }
    if (dims.empty()) continue;
    InstrId& x = (*operands)[t];
    x = ops.emitter().MaskPadding(x, op.operand_shapes[t], *op.decision.operands[t], dims,
                                  b.Zero(b.type(x)));
  }
}

}  // namespace internal
}  // namespace shardcall
