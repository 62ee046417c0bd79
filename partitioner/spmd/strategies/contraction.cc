// SPDX-License-Identifier: Apache-2.0
// Dot: padding of uneven contracting dimensions is set to zero.
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/products.h"

namespace shardcall {
inline namespace internal {
namespace {

LocalIds Emit(Localizer& l, const LocalOp& op) {
  LocalIds operands = op.operands;
  MaskContracted(l, op, &operands);
  return l.Clone(op, operands);
}

}  // namespace

constexpr Strategy kDotStrategy{
    .name = "masked product", .seconds = SecondsOfProducts, .emit = Emit};

}  // namespace internal
}  // namespace shardcall
