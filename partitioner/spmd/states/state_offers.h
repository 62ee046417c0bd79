// SPDX-License-Identifier: Apache-2.0
// Which states the values of a StateGraph may have.
#ifndef SHARDCALL_PARTITIONER_SPMD_STATES_STATE_OFFERS_H_
#define SHARDCALL_PARTITIONER_SPMD_STATES_STATE_OFFERS_H_

#include <deque>
#include <utility>
#include <vector>

#include "shardcall/partitioner/spmd/states/state_graph.h"

namespace shardcall {
inline namespace internal {

class StateOffers {
 public:
  // No value gets more than `most` states.
  StateOffers(StateGraph& graph, int most) : graph_(graph), most_(most) {}

  // What ops that send something take their operands as and make their results in, and what fits
  // the states of their operands and results; for other values what follows from these by rules,
  // near ones first.
  void NearTraffic();
  // Of products that send something, in states that have axis number `axis` of those that are free
  // in dimension `dim`, one of those of a batch; and what follows for other values.
  void InBatch(int axis, int dim);
  // Of a value that state; and what follows for other values.
  void From(LeafId leaf, const Sharding* state);
  // Beside that, replicated, and sharded over all axes in one dimension.
  void Everywhere();
  // Those of what was found that some dimension is not divided by: last, where a value has room.
  void Uneven();
  // The values of terms that take time keep the state `states` and get those that differ from it by
  // the place of one axis; all others keep it alone.
  void Neighbours(absl::Span<const int> states);
  // All values keep the state `states` and get every other one that puts whole axes into their
  // dimensions, in the order of the mesh or in the other order. Alone where these are very many.
  void All(absl::Span<const int> states);

  // The states of value `v` that differ from its first by the place of one axis, behind the others
  // of another dimension.
  static std::vector<const Sharding*> Moves(StateGraph& graph, int v);

 private:
  void Add(LeafId leaf, const Sharding* state);
  void AddSum(LeafId leaf, const Sharding& made);
  // From tensor t of an op in that state to all others.
  void Project(const StateGraph::Term& term, size_t t, const Sharding& state, bool sums);
  void Spread();

  StateGraph& graph_;
  const int most_;
  struct Added {
    int value;
    const Sharding* state;
    bool stated;
  };
  std::deque<Added> added_;
  bool takes_uneven_ = false;
  // What is added follows from a state that an operand or a result has: it may have any padding.
  bool stated_ = false;
  std::vector<std::pair<LeafId, const Sharding*>> uneven_;  // that wait for Uneven
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STATES_STATE_OFFERS_H_
