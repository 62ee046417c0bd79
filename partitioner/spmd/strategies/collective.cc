// SPDX-License-Identifier: Apache-2.0
// Collectives that are in the input program.
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall::inline internal {
namespace {

LocalIds Emit(Localizer& l, const LocalOp& op) {
  const LocalIds out = l.Clone(op, AssembleOperands(l, op));
  const Module& m = l.local();
  // The collective is the last instruction, or the operand of the get-tuple-elements of its
  // results.
  InstrId id = out[0];
  while (m.instr(id).opcode == Opcode::kGetTupleElement) id = m.operand(id, 0);
  l.emitter().set_cause({CollectiveCause::Kind::kProgram, op.id, 0});
  l.emitter().RecordAsWritten(id, l.program().num_partitions);
  return out;
}

}  // namespace

constexpr Strategy kCollectiveStrategy{.name = "as written", .emit = Emit};

}  // namespace shardcall::inline internal
