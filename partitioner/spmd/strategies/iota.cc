// SPDX-License-Identifier: Apache-2.0
// Iota: along a sharded dimension values start at this device's tile.
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
inline namespace internal {
namespace {

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  LocalIds out = ops.Clone(op, {});
  const int dim = static_cast<int>(op.instr.as<IotaAttrs>().dimension);
  const Sharding* s = op.decision.produced[0];
  if (!s->IsDimSharded(dim)) return out;
  GraphBuilder& b = ops.builder();
  const InstrId start =
      b.Convert(ops.emitter().TileStart(*s, op.instr.shape, dim), op.instr.shape->element_type());
  out[0] = b.Binary(Opcode::kAdd, out[0], b.BroadcastScalar(start, b.shape(out[0])));
  return out;
}

}  // namespace

constexpr Strategy kIotaStrategy{.name = "offset", .emit = Emit};

}  // namespace internal
}  // namespace shardcall
