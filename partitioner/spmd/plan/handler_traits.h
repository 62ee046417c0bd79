// SPDX-License-Identifier: Apache-2.0
// What the handlers can do beyond the bare rule, and what it costs; the plan
// asks, localize does.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_HANDLER_TRAITS_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_HANDLER_TRAITS_H_

#include <vector>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/spmd/plan/plan.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall {

// Can the handler of `instr` run with factor `f` sharded although data crosses
// the shards (a permutation factor, or extents that differ)?
bool HandlesPermutation(const Module& module, const Instruction& instr, const ShardingRule& rule,
                        int f);
// Bytes that the handler itself sends per device under `d`.
double HandlerBytes(const Module& module, const Instruction& instr, const Decision& d);
// Each device would draw numbers of its own.
bool IsDrawnOnce(const Instruction& instr);
// The start or the end of a send or receive.
bool IsTransfer(Opcode opcode);
// The start of a send or receive that ends with `end`; invalid if that is no end.
InstrId TransferStart(const Module& module, InstrId end);
// Ops whose gathering is their meaning (a collective of a manual region), so
// that it counts as no fallback.
bool IsFreeToGather(const Instruction& instr);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_HANDLER_TRAITS_H_
