// SPDX-License-Identifier: Apache-2.0
// Chooses how to partition an op with a rule. The candidates are the factor shardings of the
// operands, the wanted ones of the results, their compatible unions, and the proposals of
// strategies. The cheapest by the cost model wins, the first among equals.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_RULE_CHOOSER_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_RULE_CHOOSER_H_

#include <string>

#include "shardcall/partitioner/spmd/plan/plan_table.h"
#include "shardcall/sharding/cost_model.h"
#include "shardcall/sharding/rule/factor_assignment.h"

namespace shardcall::inline internal {

// An op with its rule, and the flat leaves of its operands and results.
struct RuleQuery {
  InstrId id;
  const ShardingRule* rule;
  absl::Span<const Shape* const> shapes;       // of operands
  absl::Span<const Sharding* const> operands;  // as stored
  absl::Span<const Copies* const> copies;      // of operands; empty: no copies
  absl::Span<const Sharding* const> wanted;    // results
};

class RuleChooser {
 public:
  RuleChooser(const Program& program, const CostModel& cost, PlanTable& table)
      : program_(program), module_(program.module), cost_(cost), table_(table) {}

  // The factors that may be sharded: by the rule alone, or because the op's strategy moves data
  // between the shards.
  IndexSet AllowedFactors(const Instruction& instr, const ShardingRule& rule) const;
  const Decision* Choose(const RuleQuery& query, const IndexSet& allowed);
  // A sentence that says which operand `decision` gathers because the op does not run on shards of
  // some factor; empty if there is none.
  std::string Fallback(const RuleQuery& query, const IndexSet& allowed,
                       const Decision& decision) const;

 private:
  struct Draft;

  // Computes the decision for `assignment`. Returns false as soon as it is known to take `limit`
  // seconds or more; `out` is then incomplete, and its bytes and seconds are lower bounds.
  bool Evaluate(const RuleQuery& query, const Strategy& strategy,
                const FactorAssignment& assignment, double limit, Draft* out);

  const Program& program_;
  const Module& module_;
  const CostModel& cost_;
  PlanTable& table_;
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_RULE_CHOOSER_H_
