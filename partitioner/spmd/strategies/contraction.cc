// SPDX-License-Identifier: Apache-2.0
// Dot and convolution: padding of uneven contracting dimensions is set to zero.
#include <vector>

#include "shardcall/partitioner/spmd/strategies/masked.h"
#include "shardcall/partitioner/spmd/strategies/strategy.h"

namespace shardcall::inline internal {
namespace {

LocalIds Emit(Localizer& l, const LocalOp& op) {
  LocalIds operands = op.operands;
  GraphBuilder& b = l.builder();
  for (int t = 0; t < 2 && t < static_cast<int>(operands.size()); ++t) {
    // Mask both operands, since padding may hold inf or nan.
    const std::vector<int> dims = UnevenReduced(op, t);
    if (dims.empty()) continue;
    operands[t] =
        l.emitter().MaskPadding(operands[t], op.operand_shapes[t], *op.decision.operands[t], dims,
                                b.Zero(b.type(operands[t])));
  }
  return l.Clone(op, operands);
}

}  // namespace

constexpr Strategy kDotStrategy{"masked product", nullptr, nullptr, Emit};

}  // namespace shardcall::inline internal
