// SPDX-License-Identifier: Apache-2.0
// Chooses how to partition an op with a rule. The candidates of each of its strategies are the
// factor shardings of the operands, the wanted ones of the results, their compatible unions, and
// the strategy's proposals; in programs that are looked at as a whole (state_search.h) also those
// with some axes at another factor. The cheapest by the cost model wins, the first among equals.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_RULE_CHOOSER_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_RULE_CHOOSER_H_

#include <string>

#include "shardcall/partitioner/spmd/plan/plan_table.h"
#include "shardcall/partitioner/spmd/plan/strategy.h"
#include "shardcall/sharding/cost_model.h"
#include "shardcall/sharding/rule/factor_assignment.h"

namespace shardcall {
inline namespace internal {

class RuleChooser {
 public:
  // The order in which tensors are projected onto the factors.
  using Order = absl::InlinedVector<int, 8>;

  // `elsewhere`: also those with some axes at another factor.
  RuleChooser(const Program& program, const CostModel& cost, bool elsewhere, PlanTable& table)
      : program_(program), cost_(cost), elsewhere_(elsewhere), table_(table) {}

  // `allowed` gets the factors that the decision's strategy can have sharded in such an op.
  const Decision* Choose(const OpQuery& op, IndexSet* allowed);
  // A sentence that says which operand `decision` gathers because the op does not run on shards of
  // some factor, of which `allowed` may be sharded, or takes longer on them by another strategy;
  // empty if there is none.
  std::string Fallback(const OpQuery& op, const IndexSet& allowed, const Decision& decision) const;

 private:
  class Comparison;

  // Makes the candidates of one strategy.
  void Offer(const OpQuery& op, const Strategy& strategy, Comparison* comparison);
  // Those in which only the `allowed` factors are sharded, and that are not `tried` yet.
  void OfferAmong(const OpQuery& op, const Strategy& strategy, const IndexSet& allowed,
                  absl::Span<const Order> orders, absl::InlinedVector<FactorAssignment, 12>* tried,
                  Comparison* comparison);
  // Those in which some axes that shard an operand or a result shard another factor instead, if all
  // candidates so far send something.
  void OfferElsewhere(const OpQuery& op, const Strategy& strategy, absl::Span<const int> by_size,
                      absl::InlinedVector<FactorAssignment, 12>* tried, Comparison* comparison);
  // Computes the candidate of `assignment`. Returns false as soon as it is known to take `limit`
  // seconds or more; `out` is then incomplete, and its bytes and seconds are lower bounds. They are
  // infinite if the strategy cannot run so.
  bool Evaluate(const OpQuery& op, const Strategy& strategy, const FactorAssignment& assignment,
                double limit, Candidate* out);

  const Program& program_;
  const CostModel& cost_;
  const bool elsewhere_;
  PlanTable& table_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_RULE_CHOOSER_H_
