// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/exchanged.h"

#include "shardcall/partitioner/spmd/localize/exchange.h"

namespace shardcall::inline internal {

bool HasDimInFirst(const OpQuery& op, int f) { return DimOfFactor(*op.rule, 0, f) >= 0; }

InstrId FilledOutside(Localizer& l, const LocalOp& op, int k, InstrId fill) {
  InstrId x = op.operands[k];
  for (const Exchange& e : op.decision.exchanges) {
    if (e.operand != k) continue;
    x = FillOutside(l.emitter(), x, e.dim, op.decision.operands[k]->dim(e.dim), e.ranges, fill);
  }
  return x;
}

}  // namespace shardcall::inline internal
