// SPDX-License-Identifier: Apache-2.0
// Loops that read or write an array slice by slice: a scan reads row i of its inputs and stacks row
// i of its results. If such an array is carried sharded along the rows, every iteration gathers it,
// since the row may be on any device. It is better gathered once before the loop, kept whole while
// the loop runs, and cut after it.
//
// Example: f32[1024,24] over 8 devices, of which a loop reads a row in each of 1024 iterations.
// Carried as [{"x"}, {}] it is all-gathered 1024 times, carried whole it is all-gathered once.
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_INDEXED_CARRIES_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_INDEXED_CARRIES_H_

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/propagation/graph.h"
#include "shardcall/partitioner/propagation/leaf_uses.h"
#include "shardcall/sharding/cost_model.h"

namespace shardcall {
inline namespace internal {

// What propagation knows, by canonical leaf.
struct PropagatedLeaves {
  absl::Span<const Sharding* const> sharding;
  absl::Span<const ShardingConstraint* const> constraint;
};

// A canonical leaf, and a dimension of it.
using LeafDim = std::pair<LeafId, int>;

// Finds the sharded dimensions that are cheaper whole while a loop runs, by the loop's trip count:
// those of carried arrays that the loop only passes on, slices or updates along them, for all the
// values in the loop that hold such an array. A dimension that the program annotates as sharded on
// any of these values is left alone.
class IndexedCarries {
 public:
  // `uses` are those of the program, which are found when they are first needed.
  IndexedCarries(const Program& program, const PropagationGraph& graph, const CostModel& cost,
                 const PropagatedLeaves& leaves, LeafUses* uses);
  std::vector<LeafDim> Find();

 private:
  // The values in a loop that hold one array, as far as they are known.
  struct Web {
    int dim = 0;
    std::vector<LeafId> leaves;  // the uses of the first ones have been looked at
    absl::flat_hash_set<LeafId> members;
    double sharded = 0, whole = 0;  // seconds of what is sent
  };

  // Whether the program has loops, and ops that index sharded dimensions. Most programs need no
  // more than this.
  bool LoopsAndIndexedShards() const;
  // Executions of each computation in the loop for one of the loop.
  void CountRuns(InstrId loop);
  // Whether it is cheaper to keep `carried`, and all values in the loop that hold the same array,
  // whole along the web's dimension.
  bool Consider(LeafId carried, Web* web);
  // Where the array goes by `use`; false if that needs the dimension for something else. `seconds`
  // gets what the use costs if the dimension is sharded.
  bool Follow(const LeafUse& use, Web* web, double* seconds);
  bool Join(LeafId leaf, Web* web);
  // What values that come into the web cost if they must be whole.
  void CountEntries(Web* web) const;
  // What it costs that `use` indexes the leaf while the dimension is sharded.
  double SliceSeconds(const LeafUse& use, int dim) const;
  double RowsSeconds(const LeafUse& use, int dim) const;
  double UpdateSeconds(const LeafUse& use) const;
  double Seconds(const Shape* shape, const Sharding* from, const Sharding* to) const;
  const Sharding* Whole(LeafId leaf, int dim) const;

  const Program& program_;
  const Module& module_;
  const PropagationGraph& graph_;
  const CostModel& cost_;
  const PropagatedLeaves known_;
  LeafUses& uses_;
  absl::flat_hash_map<CompId, double> runs_;  // of the computations in the current loop
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_INDEXED_CARRIES_H_
