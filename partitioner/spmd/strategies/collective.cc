// SPDX-License-Identifier: Apache-2.0
// Collectives that are in the input program.
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
inline namespace internal {

void RecordProgramsOwn(Localizer& l, const LocalOp& op, InstrId result) {
  const Module& m = l.local();
  // The collective is the last instruction, or the operand of the get-tuple-elements of its
  // results.
  while (m.instr(result).opcode == Opcode::kGetTupleElement) result = m.operand(result, 0);
  l.emitter().set_cause({CollectiveCause::Kind::kProgram, op.id, 0});
  l.emitter().RecordAsWritten(result, l.program().num_partitions);
}

namespace {

LocalIds Emit(Localizer& l, const LocalOp& op) {
  const LocalIds out = l.Clone(op, AssembleOperands(l, op));
  RecordProgramsOwn(l, op, out[0]);
  return out;
}

}  // namespace

constexpr Strategy kCollectiveStrategy{.name = "as written", .emit = Emit};

}  // namespace internal
}  // namespace shardcall
