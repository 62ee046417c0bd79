// SPDX-License-Identifier: Apache-2.0
//   before:  s = scatter(broadcast(0), indices, updates), to_apply=add;  y = add(x, s)
//   after:   y = scatter(x, indices, updates), to_apply=add
#include <optional>

#include "shardcall/partitioner/ir/analysis/identity_constant.h"
#include "shardcall/partitioner/ir/monoid.h"
#include "shardcall/partitioner/pass/backend/backend_passes.h"
#include "shardcall/partitioner/pass/rewrite.h"
#include "shardcall/partitioner/pass/use_counts.h"

namespace shardcall {
inline namespace internal {
namespace {

bool AddsToZeros(const Module& m, InstrId id, const std::vector<int>& users) {
  const Instruction& i = m.instr(id);
  Opcode op;
  if (i.opcode != Opcode::kScatter || i.operand_count != 3 || users[id.value] != 1 ||
      !RecognizeMonoid(m, i.as<ScatterAttrs>().to_apply, &op) || op != Opcode::kAdd) {
    return false;
  }
  const InstrId zeros = m.operand(id, 0);
  return m.instr(zeros).opcode == Opcode::kBroadcast &&
         IsIdentityConstant(m, m.operand(zeros, 0), Opcode::kAdd);
}

// The number of the operand of a sum that is such a scatter; -1: none.
int ScatterIn(const Module& m, InstrId id, const std::vector<int>& users) {
  if (m.instr(id).opcode != Opcode::kAdd) return -1;
  for (int k = 0; k < 2; ++k) {
    if (AddsToZeros(m, m.operand(id, k), users)) return k;
  }
  return -1;
}

}  // namespace

PassResult ScatterIntoSums(const Module& m) {
  const std::vector<int> users = UseCounts(m);
  return RewriteInstructions(
      m, [&](InstrId id) { return ScatterIn(m, id, users) >= 0; },
      [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
        const int which = ScatterIn(m, id, users);
        const InstrId scatter = m.operand(id, which);
        auto operands = cloner->OperandsOf(scatter);
        operands[0] = cloner->now(m.operand(id, 1 - which));
        cloner->Add(id, cloner->CopyOf(scatter), operands, b.computation());
      });
}

}  // namespace internal
}  // namespace shardcall
