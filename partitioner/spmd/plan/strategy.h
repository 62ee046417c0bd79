// SPDX-License-Identifier: Apache-2.0
// Strategies: how ops run on shards where their rule alone does not determine it. Each is one
// object in a file of its own in strategies/, which the op's row in ir/opcodes.inc names. The plan
// asks a strategy what it accepts, sends and computes; localize lets it emit the op. This header
// knows no more of localize/ than that it exists, so that the plan does not depend on it.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_STRATEGY_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_STRATEGY_H_

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/spmd/plan/plan.h"
#include "shardcall/sharding/cost_model.h"
#include "shardcall/sharding/rule/factor_assignment.h"
#include "shardcall/sharding/rule/rule.h"

namespace shardcall::inline internal {

class Localizer;  // localize/localizer.h
struct LocalOp;   // localize/localizer.h

using LocalIds = absl::InlinedVector<InstrId, 6>;  // of the local module

// A tensor (operands, then results) and the state from which the op's factor shardings are taken.
struct LeadingState {
  int tensor;
  const Sharding* state;
};
using Assignments = absl::InlinedVector<FactorAssignment, 4>;

struct Strategy {
  absl::string_view name;  // its own, in the dump of the plan and in the report
  // Whether dimension `d` of operand 0 may be sharded although data crosses its shards (a
  // permutation factor, or extents that differ). Null: never.
  bool (*accepts)(const Module& module, const Instruction& instr, int d) = nullptr;
  // Bytes that one device sends under `decision`, beside those of reshards. Null: none.
  double (*bytes)(const Module& module, const Instruction& instr,
                  const Decision& decision) = nullptr;
  // Seconds that one device computes under `decision`, by the formulas of `cost`. Null: it reads
  // its shards of the operands and writes those of the results.
  double (*seconds)(const CostModel& cost, const Module& module, const Instruction& instr,
                    const Decision& decision) = nullptr;
  // Further candidates beside `from`, the assignment that follows from `leading` if only the
  // `allowed` factors may be sharded. Null: none.
  Assignments (*propose)(const ShardingRule& rule, const IndexSet& allowed,
                         absl::Span<const LeadingState> leading,
                         const FactorAssignment& from) = nullptr;
  // Emits the op and returns its flat results, in the states `op.decision.produced`.
  LocalIds (*emit)(Localizer& localizer, const LocalOp& op);
};

// The strategy in the op's row.
const Strategy& StrategyOf(Opcode opcode);
// The strategies that every op with a rule can use beside its own.
absl::Span<const Strategy* const> GeneralStrategies();

// Whether the op's strategy can run with factor `f` sharded although data crosses the shards.
bool AcceptsCrossing(const Module& module, const Instruction& instr, const ShardingRule& rule,
                     int f);
// What the strategy answers, or what the null of its member says.
double StrategyBytes(const Strategy& strategy, const Module& module, const Instruction& instr,
                     const Decision& decision);
double StrategySeconds(const Strategy& strategy, const CostModel& cost, const Module& module,
                       const Instruction& instr, const Decision& decision);

// The strategies that rows of the table name.
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  extern const Strategy k##strategy##Strategy;
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP
extern const Strategy kMovedStrategy;

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_STRATEGY_H_
