// SPDX-License-Identifier: Apache-2.0
// Ops that run on shards unchanged.
#include "shardcall/partitioner/ir/build/async_pair.h"
#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"

namespace shardcall {
inline namespace internal {
namespace {

LocalIds Emit(Localizer& l, const LocalOp& op) {
  const LocalIds out = l.Clone(op, AssembleOperands(l, op));
  // An async-start of a computation that is a collective: what it sends is the program's own.
  const Module& m = l.program().module;
  const Instruction& i = m.instr(op.id);
  if (i.opcode == Opcode::kAsyncStart && WrappedCollective(m, i).valid()) {
    RecordProgramsOwn(l, op, out[0]);
  }
  return out;
}

}  // namespace

constexpr Strategy kLocalStrategy{.name = "local", .emit = Emit};

}  // namespace internal
}  // namespace shardcall
