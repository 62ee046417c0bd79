// SPDX-License-Identifier: Apache-2.0
// The operands that a plan gathers, and the results that it computes in larger parts than wanted,
// though no annotation asks for it. Not listed: gathers for annotations, manual regions and
// partition callbacks, and of dimensions that the rule of a custom call needs replicated.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_GATHERS_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_GATHERS_H_

#include "shardcall/partitioner/spmd/plan/plan_table.h"
#include "shardcall/partitioner/spmd/plan/rule_chooser.h"

namespace shardcall {
inline namespace internal {

// The gathers of an op with a rule, under `decision`.
absl::InlinedVector<Gather, 4> FindGathers(PlanTable& table, const Instruction& instr,
                                           const OpQuery& op, const IndexSet& allowed,
                                           const Decision& decision);
// Notes the operands that are taken in larger parts than stored, by a loop, branch or call (kState)
// or because nothing handles their sharding (kHandler). `taken` is by operand leaf, null for
// unchanged ones.
void NoteOperandGathers(PlanTable& table, InstrId id, Gather::Kind kind, Decision::States taken);
// Notes the results that are computed replicated because the op has no rule.
void NoteWholeResults(PlanTable& table, InstrId id, Decision::States produced,
                      Decision::States wanted);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_PLAN_GATHERS_H_
