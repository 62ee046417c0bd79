// SPDX-License-Identifier: Apache-2.0
// The fixed point iteration of Propagate: a queue of nodes per stage (step.h), each in the
// canonical order of the instructions, operands first. A round takes nodes of the lowest stage that
// has any: of level 0 all, so that shardings meet midway between the values that have them; of
// higher levels those of the first instruction, so that a sharding flows along the data before a
// later op decides: in the gradient of a product a batch's sharding is there before that of a
// weight has filled the gradient's other dimension. The round asks its nodes for proposals, and
// applies these leaf by leaf in a total order: factor kind, bytes of the source, canonical number
// of the source. Axes are only added, and a leaf that gains axes puts its nodes back into the
// lowest stage's queue.
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_ENGINE_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_ENGINE_H_

#include <deque>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/propagation/graph.h"
#include "shardcall/partitioner/propagation/leaf_uses.h"
#include "shardcall/partitioner/propagation/node_queue.h"
#include "shardcall/partitioner/propagation/propagation.h"
#include "shardcall/partitioner/propagation/step.h"
#include "shardcall/sharding/base/intern_table.h"

namespace shardcall {
inline namespace internal {

class PropagationEngine {
 public:
  PropagationEngine(const Program& program, RuleTable& rules);
  // Each run starts from the program's annotations. Errors: also those of the rules.
  absl::StatusOr<PropagationResult> Run(const PropagationOptions& options);
  // The different results of all orders of conflicts, that of ConflictOrder::kWait first. One, at
  // the cost of one, for a program without conflicts, which is the usual case. The order in
  // `options` is ignored.
  absl::StatusOr<std::vector<PropagationResult>> RunInEachOrder(const PropagationOptions& options);

 private:
  // All that a step proposes for one tensor. Where nothing else is proposed for the leaf, its new
  // sharding follows from those that the step was made for, so that it is found once.
  struct Change {
    int offers = 0;
    bool known = false;
    const Sharding* after = nullptr;  // null: not all of the offers are taken as they are
  };
  // A proposal of a step, kept by its memo, or one of a boundary or callback, of this round.
  struct Offer {
    int tensor, dim, from, from_dim;
    FactorKind kind;
    absl::Span<const AxisRef> axes;
    Change* change = nullptr;  // of a step
  };
  // Lives in the Context's arena, with all that it points to.
  struct Memo {
    const StepRule* rule;
    absl::Span<const StepTensor> tensors;
    ConflictOrder order;
    int stage;
    const BaseMesh* mesh;
    const Contest* contest = nullptr;  // null: none
    absl::Span<const Offer> offers;    // of a tensor after each other
  };
  // One proposal for a leaf.
  struct Pending {
    LeafId leaf, from;
    const Offer* offer;
    const BaseMesh* mesh;
    uint32_t node, via_order;
    int64_t bytes;        // of the source
    uint64_t from_order;  // canonical number of the source
  };

  // Where a constraint that no annotation gives comes from.
  struct Imposed {
    LeafId from;
    InstrId via;
  };

  // control_flow.cc: constraints that follow from others where loops and branches begin and end.
  struct BranchResult;
  void Impose(LeafId leaf, ShardingConstraint constraint, Imposed source);
  void ConstrainCarried();
  // Whether a value that a loop begins with is known not to be sharded in a dimension.
  bool BeginsWhole(LeafId first, size_t dim) const;
  void ConstrainBranches();
  void ConstrainBranchResult(InstrId id, int flat);
  bool ConstrainBranchSum(InstrId id, int flat);
  BranchResult ResultOfBranches(InstrId id, int flat) const;
  const Sharding* Joined(const Sharding* first, const BranchResult& ends) const;
  const Sharding* ShardingOf(LeafId leaf, const ShardingConstraint& c) const;

  // seed.cc: the initial shardings, from the program's annotations.
  void FindConstraints();
  void SeedAll(int priority);
  void SeedWithoutKept(int priority);
  void CloseKeptWhole();
  void SeedLeaf(LeafId leaf, int priority);
  void NoteConstraint(LeafId leaf);
  // Applies the axes of dimensions with user priority `priority`.
  void Activate(int priority);
  AxisList ManualAxes(LeafId leaf) const;
  const Limits* InternLimits(const Limits& limits);
  std::vector<const Sharding*> OutputShardings() const;

  // engine.cc
  // Finds the constraints, which are the same for all runs.
  void Prepare(bool propagate);
  // From the initial shardings to the fixed point.
  absl::Status Spread(const std::set<int>& priorities);
  // Keeps whole what is cheaper so while a loop runs (indexed_carries.h). False: nothing more.
  bool KeepIndexedWhole(const CostModel& cost);
  bool KeptWhole(LeafId leaf, int dim) const {
    const auto kept = kept_whole_.find(leaf);
    return kept != kept_whole_.end() && kept->second.Contains(dim);
  }
  absl::Status RunQueues();
  absl::Status Round(int stage);
  absl::Status Visit(uint32_t n, int stage);
  void VisitRule(uint32_t n, const Node& node, int stage);
  // Whether the rule's tensors are alike and have the same sharding: the usual case, as each op
  // that gave its own is visited again.
  bool IsSettled(const StepRule& rule, absl::Span<const LeafId> leaves) const;
  void VisitBoundary(uint32_t n, const Node& node);
  ConflictOrder OrderOf(const OpRule* rule) const {
    if (own_orders_.empty()) return conflicts_;
    const auto own = own_orders_.find(rule);
    return own == own_orders_.end() ? conflicts_ : own->second;
  }
  void SetOrders(const PropagationOptions& options);
  void NoteConflict(const Node& node, const Contest& contest);
  const Memo& StepOf(const Node& node, absl::Span<const LeafId> leaves);
  void Keep(const StepResult& result, Memo* memo);
  void Propose(LeafId leaf, LeafId from, uint32_t node, const Offer* offer, const BaseMesh* mesh,
               int64_t bytes);
  void Queue(uint32_t node, int stage);
  void QueueLeaf(LeafId leaf);
  void EqualizeGroups();

  // apply.cc: what the proposals of a round do to a leaf.
  absl::Status Apply(absl::Span<const Pending> all);
  static absl::Span<const Pending> WithoutRepeats(absl::Span<const Pending> group,
                                                  absl::InlinedVector<Pending, 4>* kept);
  // Of one step alone; false if others propose something, too, or not all of it is taken.
  bool ApplyChange(absl::Span<const Pending> group);
  const Sharding* AsSource(absl::Span<const Pending> group) const;
  const Sharding* AfterAll(absl::Span<const Pending> group) const;
  // Notes what brought axes to a dimension, if it brought more than what is noted.
  void Note(LeafId leaf, const Pending& p, int64_t brought);

  // callbacks.cc
  absl::Status VisitCallbacks(uint32_t n, const Node& node);
  absl::StatusOr<std::vector<const Sharding*>> AskInferCallback(
      const Node& node, const std::vector<const Sharding*>& operands);
  absl::StatusOr<const Sharding*> AskUserCallback(const Node& node, LeafId leaf,
                                                  const Sharding* wanted);
  const Sharding* Extended(const Sharding* before, const Sharding* s, const Sharding* wanted,
                           const Limits& limits);

  const Program& program_;
  RuleTable& rules_;
  Context& context_;
  PropagationGraph graph_;
  LeafUses uses_;

  ConflictOrder conflicts_ = ConflictOrder::kWait;
  absl::flat_hash_map<const OpRule*, ConflictOrder> own_orders_;  // of choices
  std::vector<Conflict> met_;
  absl::flat_hash_set<const OpRule*> met_rules_;

  // By canonical leaf.
  std::vector<const Sharding*> sharding_;
  std::vector<const Limits*> limits_;
  std::vector<const ShardingConstraint*> constraint_;
  // Of control_flow.cc: the values that got a constraint from others, among them the results of
  // conditionals.
  absl::flat_hash_map<LeafId, Imposed> imposed_;
  absl::flat_hash_set<LeafId> branch_results_;
  std::deque<ShardingConstraint> imposed_constraints_;
  absl::flat_hash_map<LeafId, IndexSet> kept_whole_;  // dimensions, of KeepIndexedWhole
  ProvenanceTable provenance_;
  // What runs and rounds of KeepIndexedWhole begin with, kept from the second one on: most programs
  // need only one.
  struct Seeds {
    std::vector<const Sharding*> sharding;
    std::vector<const Limits*> limits;
    ProvenanceTable provenance;
  };
  std::optional<Seeds> seeds_;
  std::optional<int> seeded_priority_;  // of the last seeds, or of those that are kept
  std::optional<bool> prepared_;        // for runs that propagate, or not

  std::deque<Limits> limits_storage_;
  InternTable<Limits> limits_table_;
  InternTable<Memo> memo_table_;

  NodeQueue queue_[kNumStages];  // of places in the graph's node order
  std::vector<uint32_t> round_;  // the nodes that a round takes off its queue
  std::vector<Pending> pending_;
  std::deque<Offer> own_offers_;  // of this round's boundaries and callbacks
  std::deque<AxisList> own_axes_;

  // Answers of callbacks, by kind of call, manual region, result (-1: all) and the shardings they
  // were given.
  using Asked = std::tuple<const void*, int, int, std::vector<const Sharding*>>;
  absl::flat_hash_map<Asked, std::vector<const Sharding*>> answers_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_ENGINE_H_
