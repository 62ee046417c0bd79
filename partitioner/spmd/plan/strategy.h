// SPDX-License-Identifier: Apache-2.0
// Strategies: how ops run on shards where their rule alone does not determine it. Each is one
// object in a file of its own in strategies/; the table in strategy.cc says which ones an op has.
// The plan lets them complete candidates and compares these; localize lets the chosen one emit the
// op. This header knows no more of localize/ than that it exists, so that the plan does not depend
// on it.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_STRATEGY_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_STRATEGY_H_

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/spmd/plan/candidate.h"
#include "shardcall/sharding/cost_model.h"
#include "shardcall/sharding/rule/factor_assignment.h"

namespace shardcall {
inline namespace internal {

class OpBuilder;  // localize/op_builder.h
struct LocalOp;   // localize/op_builder.h

using LocalIds = absl::InlinedVector<InstrId, 6>;  // of the local module

// A tensor (operands, then results) and the state from which the op's factor shardings are taken.
struct LeadingState {
  int tensor;
  const Sharding* state;
};
using Assignments = absl::InlinedVector<FactorAssignment, 4>;

struct Strategy {
  absl::string_view name;  // its own, in the dump of the plan and in the report
  // The rule by which it cuts the op, if that is not the op's own. False: it cannot run this op.
  bool (*rule)(const OpQuery& op, ShardingRule* rule) = nullptr;
  // Whether it may run with the crossing factor `f` sharded (IsCrossing). Null: never.
  bool (*crosses)(const OpQuery& op, int f) = nullptr;
  // Adds the exchanges and emitted collectives of a candidate whose factors and states are given.
  // False: the op cannot run so. Null: there are none.
  bool (*complete)(const OpQuery& op, Candidate* candidate) = nullptr;
  // Whether it reads OpQuery::sources.
  bool reads_sources = false;
  // Seconds that one device computes under `decision`, by the formulas of `cost`. Null: it reads
  // its shards of the operands and writes those of the results.
  double (*seconds)(const CostModel& cost, const Module& module, const Instruction& instr,
                    const Decision& decision) = nullptr;
  // Further factor shardings beside `from`, the assignment that follows from `leading` if only the
  // `allowed` factors may be sharded. Null: none.
  Assignments (*propose)(const ShardingRule& rule, const IndexSet& allowed,
                         absl::Span<const LeadingState> leading,
                         const FactorAssignment& from) = nullptr;
  // Emits the op and returns its flat results, in the states `op.decision.produced`. Operands have
  // been exchanged.
  LocalIds (*emit)(OpBuilder& ops, const LocalOp& op);
};

// The strategies of an op, its own first; more than one compete.
absl::Span<const Strategy* const> StrategiesOf(Opcode opcode);
inline const Strategy& StrategyOf(Opcode opcode) { return *StrategiesOf(opcode)[0]; }
// That of a custom call whose target has a body, which builds it.
extern const Strategy kBodyStrategy;
// The strategy of an op that competes with no other of its own.
inline const Strategy& OwnStrategy(Opcode opcode, bool has_body) {
  return has_body ? kBodyStrategy : StrategyOf(opcode);
}
// Whether one of them reads OpQuery::sources.
bool ReadsSources(Opcode opcode);
// The strategies that every op with a rule can use beside its own.
absl::Span<const Strategy* const> GeneralStrategies();

// The factors that may be sharded by any op: those that are neither crossing nor needed whole.
IndexSet FactorsAllowedByRule(const ShardingRule& rule);
// These, and the crossing ones of `op.rule` that the strategy can run on shards.
IndexSet AllowedFactors(const OpQuery& op, const Strategy& strategy);
// What the strategy answers, or what the null of its member says.
double StrategySeconds(const Strategy& strategy, const CostModel& cost, const Module& module,
                       const Instruction& instr, const Decision& decision);

// The strategies that rows of the op table name.
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  extern const Strategy k##strategy##Strategy;
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP
extern const Strategy kConvolutionSumStrategy, kCumulativeStrategy, kSliceSumStrategy;
extern const Strategy kEndsOfLineStrategy, kSliceStridedStrategy, kSortOfLineStrategy;
extern const Strategy kFftOfDimsStrategy, kFftOfLineStrategy, kFftOfRealLineStrategy;
extern const Strategy kConcatenateThroughStrategy, kPadThroughStrategy, kSliceThroughStrategy;
extern const Strategy kCholeskyByBlocksStrategy, kPlacedUpdateStrategy;
extern const Strategy kRightSidesStrategy, kSolveByBlocksStrategy;
extern const Strategy kMovedStrategy, kReshapeExchangeStrategy, kRotateStrategy;

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_STRATEGY_H_
