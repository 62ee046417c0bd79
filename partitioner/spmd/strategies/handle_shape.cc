// SPDX-License-Identifier: Apache-2.0
// Iota, dynamic-slice: ops whose attributes name positions or sizes.
#include "shardcall/partitioner/spmd/localize/localizer.h"

namespace shardcall {

// Along a sharded dimension values start at this device's tile.
LocalIds HandleIota(Localizer& l, const LocalOp& op) {
  LocalIds out = l.Clone(op, {});
  const int dim = static_cast<int>(op.instr.as<IotaAttrs>().dimension);
  const Sharding* s = op.decision.produced[0];
  if (!s->IsDimSharded(dim)) return out;
  GraphBuilder& b = l.builder();
  const InstrId start = b.Convert(l.emitter().TileStart(*s, op.instr.shape, dim),
                                  op.instr.shape->element_type());
  out[0] = b.Binary(Opcode::kAdd, out[0], b.BroadcastScalar(start, b.shape(out[0])));
  return out;
}

// The index of a dimension taken whole is clamped to 0 on any shard.
LocalIds HandleDynamicSlice(Localizer& l, const LocalOp& op) {
  DynamicSliceAttrs attrs;
  attrs.sizes = op.result_shapes[0]->dims();
  return l.Clone(op, op.operands, InternAttributes(l.context(), attrs));
}

}  // namespace shardcall
