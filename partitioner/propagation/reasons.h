// SPDX-License-Identifier: Apache-2.0
// The texts that tell where shardings came from: the chain of steps from an argument or a
// constraint to a value. Values of one program share most of their chains, so that what is known
// of one is kept for the others: the texts of all values take time and memory linear in the
// program.
#ifndef SHARDCALL_PARTITIONER_PROPAGATION_REASONS_H_
#define SHARDCALL_PARTITIONER_PROPAGATION_REASONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/propagation/propagation.h"

namespace shardcall {
inline namespace internal {

class Reasons {
 public:
  // Of a longer chain, a text has this many steps at its start and as many at its end.
  static constexpr int kStepsAtAnEnd = 8;

  // Refers to both, which must outlive it. With `whole` a text has every step of its chain, so
  // that the texts of a chain of n values have n^2 steps.
  Reasons(const Program& program, const PropagationResult& result, bool whole = false)
      : program_(program), result_(result), whole_(whole) {}

  // "argument 0 -> %y operand 0 -> result -> (120 more steps) -> %z operand 0 -> result". Where the
  // dimensions of a value have their axes by different ways: "dim 0: argument 0 -> ..; dim 1: ..".
  std::string Of(LeafId leaf);
  // The same of the axes of one dimension, which has some.
  std::string OfDim(LeafId leaf, int dim) { return OfDim({program_.leaves.canonical(leaf), dim}); }

 private:
  // A dimension of a canonical leaf.
  struct Place {
    LeafId leaf;
    int dim = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  // The chain that ends at a place.
  struct Chain {
    int32_t steps = -1;  // -1: not known yet
    Place origin;
    Place head;  // after the first kStepsAtAnEnd steps, or the place itself
  };

  const Provenance& Step(Place place) const { return result_.provenance.at(place.leaf, place.dim); }
  Chain& ChainAt(Place place) { return chains_[result_.provenance.slot(place.leaf, place.dim)]; }
  Place Before(Place place) const;  // from which the axes came
  const Chain& ChainOf(Place place);
  std::string OfDim(Place place);
  std::string OriginText(Place place);
  // "" for a leaf that has what propagation gave it.
  std::string WhyChosen(LeafId leaf);
  int ResultOf(LeafId leaf);         // the entry's first result (flat) that is the value; -1: none
  bool IsArgument(InstrId i) const;  // a parameter of the entry
  std::string ArgumentText(LeafId leaf);
  std::string WhyReplicated(LeafId leaf);
  void FindSharedWith();
  std::string StepText(Place place);             // the step that leads to it
  std::string RoleOf(InstrId via, LeafId leaf);  // "operand 1", "result" or "result 2"
  int64_t RoleNumber(InstrId via, LeafId leaf);  // see .cc

  const Program& program_;
  const PropagationResult& result_;
  const bool whole_;
  bool looked_beside_ = false;
  // Of replicated values: the first instruction that has them and sharded ones.
  absl::flat_hash_map<LeafId, InstrId> sharded_beside_;
  std::vector<Chain> chains_;                             // by slot of the provenance
  absl::flat_hash_map<InstrId, int64_t> first_argument_;  // of the entry's parameters
  absl::flat_hash_map<LeafId, int> result_of_;            // by canonical leaf
  // Of instructions with many operands or results: the role of each canonical leaf.
  absl::flat_hash_map<InstrId, absl::flat_hash_map<LeafId, int64_t>> roles_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_REASONS_H_
