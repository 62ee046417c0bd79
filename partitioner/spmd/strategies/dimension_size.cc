// SPDX-License-Identifier: Apache-2.0
// The size of a dimension that is sharded is that of the whole array. Dimensions whose size is
// known at run time only are whole.
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
inline namespace internal {
namespace {

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const int d = static_cast<int>(op.instr.as<DimensionsAttrs>().dimensions[0]);
  if (!op.decision.operands[0]->IsDimSharded(d)) return ops.Clone(op, op.operands);
  return {ops.builder().ConstantInt(op.instr.shape->element_type(), op.operand_shapes[0]->dim(d))};
}

}  // namespace

constexpr Strategy kDimensionSizeStrategy{.name = "size of the whole", .emit = Emit};

}  // namespace internal
}  // namespace shardcall
