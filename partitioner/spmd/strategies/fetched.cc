// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/fetched.h"

namespace shardcall::inline internal {

InstrId ResultIndex(Localizer& l, const LocalOp& op, InstrId like, int dim) {
  GraphBuilder& b = l.builder();
  const InstrId start = l.emitter().TileStart(*op.decision.produced[0], op.instr.shape, dim);
  const InstrId index = b.Iota(ElementType::kS32, b.shape(like)->dims(), dim);
  return b.Binary(Opcode::kAdd, index, b.BroadcastScalar(start, b.shape(index)));
}

InstrId FetchOperand(Localizer& l, const LocalOp& op, int k, InstrId x, int dim,
                     absl::Span<const AxisRef> axes, const FetchSpec& spec) {
  l.emitter().set_cause({CollectiveCause::Kind::kOperand, op.id, k});
  return EmitFetch(l.emitter(), x, dim, axes, spec);
}

InstrId Splat(GraphBuilder& b, int64_t value, InstrId like) {
  return b.BroadcastScalar(b.ConstantInt(ElementType::kS32, value), b.shape(like));
}

}  // namespace shardcall::inline internal
