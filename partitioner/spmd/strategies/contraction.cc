// SPDX-License-Identifier: Apache-2.0
// Dot: padding of uneven contracting dimensions is set to zero.
#include "shardcall/partitioner/ir/shapes/instruction_cost.h"
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/partitioner/spmd/strategies/masked.h"

namespace shardcall::inline internal {
namespace {

// Each device multiplies and adds the products of its shards.
double Seconds(const CostModel& cost, const Module& module, const Instruction& instr,
               const Decision& d) {
  double shards = 1;
  for (absl::Span<const AxisRef> a : d.factor_axes) shards *= static_cast<double>(AxesSize(a));
  return cost.ProductSeconds(ProductsOf(module, instr) / shards);
}

LocalIds Emit(Localizer& l, const LocalOp& op) {
  LocalIds operands = op.operands;
  MaskContracted(l, op, &operands);
  return l.Clone(op, operands);
}

}  // namespace

constexpr Strategy kDotStrategy{.name = "masked product", .seconds = Seconds, .emit = Emit};

}  // namespace shardcall::inline internal
