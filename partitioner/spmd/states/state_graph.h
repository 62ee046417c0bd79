// SPDX-License-Identifier: Apache-2.0
// What a plan costs, as a function of the states of the values that a program leaves open: a sum of
// terms, each of one op and the few values that it touches. Ops are priced as the plan prices them
// (plan/op_decider.h), but one by one: sums that wait and slices that are read through are left
// out, and copies that several ops share are priced by a guess. So only a plan tells the truth.
#ifndef SHARDCALL_PARTITIONER_SPMD_STATES_STATE_GRAPH_H_
#define SHARDCALL_PARTITIONER_SPMD_STATES_STATE_GRAPH_H_

#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/spmd/plan/op_decider.h"
#include "shardcall/partitioner/spmd/plan/options.h"
#include "shardcall/partitioner/spmd/states/min_sum.h"

namespace shardcall {
inline namespace internal {

// The instructions of these computations, in an order that equal modules share.
std::vector<InstrId> InCanonicalOrder(const Module& module, absl::Span<const CompId> computations);

class StateGraph {
 public:
  // A value that nothing annotates, and the states it may have. The first is that of propagation.
  struct Value {
    LeafId leaf;  // canonical
    absl::InlinedVector<const Sharding*, 6> states;
    AxisList free;  // the axes of the mesh that are not manual where it is
    std::vector<int> terms;
  };
  // An op by its rule, with the leaves of its operands and results; or a value that is resharded:
  // to the state of another one (an annotation, a loop), or to that of a result of the entry.
  struct Term {
    InstrId op;  // invalid for a reshard
    absl::InlinedVector<LeafId, 4> leaves;
    int output = -1;
    double runs = 1;                     // executions
    absl::InlinedVector<int, 4> values;  // of the leaves that are open, ascending
  };

  StateGraph(const Program& program, const PropagationResult& propagation, RuleTable& rules,
             const SpmdOptions& options, PlanMemo& memo);

  const Program& program() const { return program_; }
  std::vector<Value>& values() { return values_; }
  const std::vector<Term>& terms() const { return terms_; }
  const Term& term(int t) const { return terms_[t]; }
  // -1: its state is given.
  int value_of(LeafId canonical) const { return value_of_[canonical.value]; }
  const ShardingRule& rule(const Term& term) { return *rules_.rule(term.op); }
  const Sharding* output(int k) const { return propagation_.outputs[k]; }
  // The state of a leaf of the term, if open values have their first.
  const Sharding* FirstState(const Term& term, size_t leaf) const;
  // Where a term that is a reshard takes its value: the state of its last leaf, or of a result.
  const Sharding* MovesTo(const Term& term) const;
  // How an op is run between these states.
  const Decision& FirstDecision(const Term& term);
  // What the term sends takes so long, in all executions, if open values have their first states; 0
  // if it sends nothing.
  double FirstSeconds(const Term& term);
  // Of each of the `most` terms that take longest to send what they do, the largest value.
  std::vector<int> DearestValues(size_t most);
  // Whether an op computes each element of its result from those of operands of the same shape.
  bool IsPointwise(const Term& term) const;
  // How many combinations of states are decided in all, by AddTables.
  void LimitDecisions(int64_t decisions) { decisions_left_ = decisions; }
  // What a reshard costs.
  double MoveSeconds(const Shape* shape, const Sharding* from, const Sharding* to);

  // Adds the seconds of the term by the states of its values, which are the first variables.
  // `shared_copies`: reshards of an operand cost as if all ops that read it shared one. An op of at
  // most `most_decided` combinations of states is decided for each. For others the ways are
  // combined that some of them are run: that takes less time, and may be cheaper than the plan can
  // do. An op of very many gets a variable of its own, which says in which way it is run.
  void AddTables(const Term& term, bool shared_copies, double most_decided, std::vector<int>* sizes,
                 std::vector<CostTable>* tables);
  // The propagation with these states, by value.
  PropagationResult With(absl::Span<const int> states) const;

 private:
  void FindOrder();
  void FindValues();
  void Touch(InstrId id);
  void FindTerms();
  void AddMove(LeafId from, LeafId to, double runs);
  void Add(Term term);
  bool IsPriced(InstrId id);
  absl::InlinedVector<LeafId, 4> LeavesOf(InstrId id) const;
  size_t num_operands(const Term& term) const;
  using StateList = absl::InlinedVector<const Sharding*, 6>;
  // Those that leaf k of the term may have: of an open value all of them, else the given one.
  StateList StatesOf(const Term& term, size_t k) const;
  // The place of leaf k among the term's values; -1: its state is given.
  int PlaceOf(const Term& term, size_t k) const;
  // Whether one of the leaves before leaf k is the same.
  static bool SaysSomething(const ShardingConstraint& c);
  static bool IsRepeated(absl::Span<const LeafId> leaves, size_t k);
  const Decision& DecisionOf(const Term& term, absl::Span<const Sharding* const> states);
  // One way to run an op: the states in which it takes its operands and makes its results, and the
  // seconds it takes beside reshards of these.
  struct Way {
    States states;
    double seconds;
  };
  void AddWay(const Term& term, absl::Span<const Sharding* const> states, std::vector<Way>* ways);
  std::vector<Way> WaysOf(const Term& term);
  // Of each leaf that differs from those before it: what reshards it, by its state and then by way.
  struct LeafMoves {
    int place;  // among the term's values; -1: its state is given
    std::vector<double> seconds;
  };
  std::vector<LeafMoves> MovesOf(const Term& term, absl::Span<const Way> ways, bool shared_copies);
  // Equal for terms of equal costs: of one rule, between the same states.
  std::vector<uintptr_t> KeyOf(const Term& term, bool shared_copies) const;
  struct OpCosts {
    std::vector<Way> ways;
    std::vector<LeafMoves> moves;
    std::vector<double> given;  // by way: what does not depend on open values
    std::vector<double> joint;  // of one run, by the states of all values; empty: not made
  };
  const OpCosts& CostsOf(const Term& term, bool shared_copies, double most_decided,
                         absl::Span<const int> sizes);
  std::vector<double> DecidedCosts(const Term& term, absl::Span<const int> sizes);

  const Program& program_;
  const Module& module_;
  const LeafTable& leaves_;
  const PropagationResult& propagation_;
  RuleTable& rules_;
  const SpmdOptions& options_;
  PlanTable table_;
  OpDecider decider_;
  const Invariants invariants_;
  std::vector<InstrId> order_;
  std::vector<double> runs_;  // by computation
  enum Openness : uint8_t { kUntouched, kOpen, kGiven };
  std::vector<Openness> open_;  // by canonical leaf
  std::vector<int> readers_;    // by canonical leaf: ops
  std::vector<int> value_of_;   // by canonical leaf
  std::vector<Value> values_;
  std::vector<Term> terms_;
  int64_t decisions_left_ = 0;
  absl::flat_hash_map<std::vector<uintptr_t>, std::unique_ptr<OpCosts>> costs_;
  absl::flat_hash_map<std::tuple<const Shape*, const Sharding*, const Sharding*>, double> moves_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STATES_STATE_GRAPH_H_
