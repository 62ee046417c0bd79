// SPDX-License-Identifier: Apache-2.0
// What a plan gathers, or computes in larger parts than wanted, though nobody asked for it. Not
// listed: what annotations, manual regions and partition callbacks ask for, and dimensions that
// the rule of a custom call keeps whole.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_GATHERS_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_GATHERS_H_

#include "shardcall/partitioner/spmd/plan/plan_table.h"
#include "shardcall/partitioner/spmd/plan/rule_chooser.h"

namespace shardcall::inline internal {

// Of an op with a rule, under `decision`.
absl::InlinedVector<Gather, 4> FindGathers(PlanTable& table, const Instruction& instr,
                                           const RuleQuery& query, const IndexSet& allowed,
                                           const Decision& decision);
// Operands that are taken in larger parts than they are stored in: `taken`, null for those
// that are not. By a loop, a branch or a call (kState), or for want of more (kHandler).
void NoteOperandGathers(PlanTable& table, InstrId id, Gather::Kind kind, Decision::States taken);
// Results that are computed whole for want of any rule.
void NoteWholeResults(PlanTable& table, InstrId id, Decision::States produced,
                      Decision::States wanted);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_GATHERS_H_
