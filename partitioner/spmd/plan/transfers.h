// SPDX-License-Identifier: Apache-2.0
// Ops that one device runs: random numbers that are drawn once, and the start and end of transfers
// (send, recv).
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_TRANSFERS_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_TRANSFERS_H_

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Whether the op draws random numbers, which would differ between devices (rng,
// rng-get-and-update-state).
bool IsDrawnOnce(const Instruction& instr);
// The start or the end of a send or receive.
bool IsTransfer(Opcode opcode);
// The start of the send or receive that `end` completes; invalid if `end` completes none.
InstrId TransferStart(const Module& module, InstrId end);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_TRANSFERS_H_
