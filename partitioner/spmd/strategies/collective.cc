// SPDX-License-Identifier: Apache-2.0
// Collectives that are in the input program.
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
inline namespace internal {

void RecordProgramsOwn(OpBuilder& ops, const LocalOp& op, InstrId result) {
  const Module& m = ops.local();
  // The collective is the last instruction, or the operand of the get-tuple-elements of its
  // results.
  while (m.instr(result).opcode == Opcode::kGetTupleElement) result = m.operand(result, 0);
  ops.emitter().set_cause({CollectiveCause::Kind::kProgram, op.id, 0});
  ops.emitter().RecordAsWritten(result, ops.program().num_partitions);
}

namespace {

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const LocalIds out = ops.Clone(op, AssembleOperands(ops, op));
  RecordProgramsOwn(ops, op, out[0]);
  return out;
}

}  // namespace

constexpr Strategy kCollectiveStrategy{.name = "as written", .emit = Emit};

}  // namespace internal
}  // namespace shardcall
