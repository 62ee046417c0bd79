// SPDX-License-Identifier: Apache-2.0
// Ops that one device does: what is drawn once, and the two ends of a transfer.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_TRANSFERS_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_TRANSFERS_H_

#include "shardcall/partitioner/ir/module.h"

namespace shardcall::inline internal {

// Each device would draw numbers of its own.
bool IsDrawnOnce(const Instruction& instr);
// The start or the end of a send or receive.
bool IsTransfer(Opcode opcode);
// The start of a send or receive that ends with `end`; invalid if that is no end.
InstrId TransferStart(const Module& module, InstrId end);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_TRANSFERS_H_
