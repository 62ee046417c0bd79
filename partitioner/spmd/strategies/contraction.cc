// SPDX-License-Identifier: Apache-2.0
// Dot: padding of uneven contracting dimensions is set to zero.
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/parts/products.h"

namespace shardcall {
inline namespace internal {
namespace {

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  LocalIds operands = op.operands;
  MaskContracted(ops, op, &operands);
  return ops.Clone(op, operands);
}

}  // namespace

constexpr Strategy kDotStrategy{
    .name = "masked product", .seconds = SecondsOfProducts, .emit = Emit};

}  // namespace internal
}  // namespace shardcall
