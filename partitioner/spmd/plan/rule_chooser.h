// SPDX-License-Identifier: Apache-2.0
// How one op with a rule is done. Candidates are the factor shardings that the operands have,
// that the results are wanted in, their compatible unions, and what strategies propose beside
// them; the cheapest by the cost model wins, the first among equals.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_RULE_CHOOSER_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_RULE_CHOOSER_H_

#include <string>

#include "shardcall/partitioner/spmd/plan/plan_table.h"
#include "shardcall/sharding/cost_model.h"
#include "shardcall/sharding/rule/factor_assignment.h"

namespace shardcall::inline internal {

// An op by its rule, with the flat leaves of its operands and results.
struct RuleQuery {
  InstrId id;
  const ShardingRule* rule;
  absl::Span<const Shape* const> shapes;       // of operands
  absl::Span<const Sharding* const> operands;  // as stored
  absl::Span<const Copies* const> copies;      // of operands; empty: none at all
  absl::Span<const Sharding* const> wanted;    // results
};

class RuleChooser {
 public:
  RuleChooser(const Program& program, const CostModel& cost, PlanTable& table)
      : program_(program), module_(program.module), cost_(cost), table_(table) {}

  // The factors that may be sharded: by the rule, or by the op's strategy where data then
  // crosses the shards.
  IndexSet AllowedFactors(const Instruction& instr, const ShardingRule& rule) const;
  const Decision* Choose(const RuleQuery& query, const IndexSet& allowed);
  // What `decision` gathers because the op does not run on shards of some factor, as a
  // sentence; empty if nothing.
  std::string Fallback(const RuleQuery& query, const IndexSet& allowed,
                       const Decision& decision) const;

 private:
  struct Draft;

  // False as soon as the decision is known to take `limit` seconds or more; then
  // what stands in `out` is not whole.
  bool Evaluate(const RuleQuery& query, const Strategy& strategy,
                const FactorAssignment& assignment, double limit, Draft* out);
  double LocalSeconds(const RuleQuery& query, const Decision& d) const;

  const Program& program_;
  const Module& module_;
  const CostModel& cost_;
  PlanTable& table_;
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_RULE_CHOOSER_H_
