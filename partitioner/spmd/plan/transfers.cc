// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/transfers.h"

namespace shardcall {
inline namespace internal {

bool IsDrawnOnce(const Instruction& instr) { return HasTrait(instr.opcode, kDrawsNumbers); }

bool IsTransfer(Opcode opcode) { return GetOpcodeInfo(opcode).attrs == AttrKind::kSendRecv; }

InstrId TransferStart(const Module& module, InstrId end) {
  const Opcode opcode = module.instr(end).opcode;
  const AsyncForms* const forms = FormsEndedBy(opcode);
  if (!IsTransfer(opcode) || forms == nullptr) return InstrId();
  const InstrId start = module.operand(end, 0);
  return module.instr(start).opcode == forms->start ? start : InstrId();
}

}  // namespace internal
}  // namespace shardcall
