// SPDX-License-Identifier: Apache-2.0
// Completes a chain of moves from any state to the target, without a search: it sends little where
// dimensions divide, and gathers what does not.
#ifndef SHARDCALL_SHARDING_RESHARD_RESHARD_COMPLETION_H_
#define SHARDCALL_SHARDING_RESHARD_RESHARD_COMPLETION_H_

#include <vector>

#include "shardcall/sharding/reshard/reshard_moves.h"

namespace shardcall {
inline namespace internal {

class ReshardCompletion : public ReshardMoves {
 public:
  using ReshardMoves::ReshardMoves;

 protected:
  struct Link {
    Step step;
    State after;
    double cost;  // of the chain up to here
  };

  // The rest of a chain that has cost `cost` up to `l`. Empty if `l` is the target, or if the whole
  // would not cost less than `limit`. Partial atoms are all-reduced; then, as long as there is one,
  // it takes the first of these moves that is possible: slices; an all-to-all that brings atoms to
  // their place; the one permute after which only slices, all-to-alls and gathers of superfluous
  // atoms are needed; atoms that become partial; at last the gather of the fewest shards.
  std::vector<Link> Complete(const Lists& l, double cost, double limit);

  // Of dimension d, the number of atoms that may stay when it is gathered and cut to its target.
  size_t Kept(int d, const AtomList& atoms) const;

 private:
  void Add(const Lists& next, Step step);
  void ReducePartial();
  void DropToPartial();
  bool SameSizes() const;  // so that a permute leads to the target
  bool Slice();
  bool Permute();
  bool MoveToPlace();
  bool PadToPartial();
  void GatherFewest();
  bool AreDimsDone() const { return std::equal(at_.begin(), at_.end() - 1, target_.begin()); }
  // The atoms of `at_` over the dimensions so that each dimension keeps its number of shards, what
  // can stand in its place does, and the others are the minor atoms where they wait, in an order in
  // which each can leave before those below it. False if that is not possible.
  bool Arrange(Lists* arranged) const;

  Lists at_;
  double cost_ = 0;
  bool arranged_ = false;
  std::vector<Link> chain_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RESHARD_RESHARD_COMPLETION_H_
