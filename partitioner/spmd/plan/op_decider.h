// SPDX-License-Identifier: Apache-2.0
// Decisions for ops with a rule, each shared by all equal ops: of one rule, between the same
// states, under the same circumstances.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_OP_DECIDER_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_OP_DECIDER_H_

#include "shardcall/partitioner/spmd/plan/invariants.h"
#include "shardcall/partitioner/spmd/plan/plan_memo.h"
#include "shardcall/partitioner/spmd/plan/plan_table.h"
#include "shardcall/partitioner/spmd/plan/rule_chooser.h"
#include "shardcall/partitioner/spmd/plan/state_search.h"

namespace shardcall {
inline namespace internal {

// What a decision depends on beside the states of operands and results; see OpQuery.
struct Circumstances {
  CopyList copies;
  Sources sources;
  Invariants::Shares shares;
  AccumulatedResult accumulated;
  absl::InlinedVector<int64_t, 8> places;
};

class OpDecider {
 public:
  OpDecider(const Program& program, RuleTable& rules, const SpmdOptions& options, PlanTable& table,
            PlanMemo& memo)
      : program_(program),
        rules_(rules),
        options_(options),
        table_(table),
        memo_(memo),
        chooser_(program, options.cost, LooksAhead(program, options), table) {
    if (memo_.last.empty()) FindRepeats();
  }

  // `rule` is that of the op in the rule table.
  const PlanMemo::Entry* Decide(InstrId id, const ShardingRule& rule, const States& operands,
                                const States& wanted, const Circumstances& circumstances);
  bool HasBody(InstrId id);

  int64_t hits() const { return hits_; }
  int64_t misses() const { return misses_; }

 private:
  // For each operand the first one that is the same value; empty if all differ.
  using OperandIndices = absl::InlinedVector<int, 12>;
  OperandIndices FirstWithValue(InstrId id) const;
  // Finds which ops have operands that are the same value, once for all plans.
  void FindRepeats();
  const PlanMemo::Entry* Make(const OpQuery& query);

  const Program& program_;
  RuleTable& rules_;
  const SpmdOptions& options_;
  PlanTable& table_;
  PlanMemo& memo_;
  RuleChooser chooser_;
  int64_t hits_ = 0, misses_ = 0;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_OP_DECIDER_H_
