// SPDX-License-Identifier: Apache-2.0
// Ops that run on shards unchanged.
#include "shardcall/partitioner/ir/build/async_pair.h"
#include "shardcall/partitioner/spmd/localize/op_builder.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
inline namespace internal {
namespace {

LocalIds Emit(OpBuilder& ops, const LocalOp& op) {
  const LocalIds out = ops.Clone(op, AssembleOperands(ops, op));
  // An async-start of a computation that is a collective: what it sends is the program's own.
  const Module& m = ops.program().module;
  const Instruction& i = m.instr(op.id);
  if (i.opcode == Opcode::kAsyncStart && WrappedCollective(m, i).valid()) {
    RecordProgramsOwn(ops, op, out[0]);
  }
  return out;
}

}  // namespace

constexpr Strategy kLocalStrategy{.name = "local", .emit = Emit};

}  // namespace internal
}  // namespace shardcall
