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

namespace shardcall::inline internal {

class Reasons {
 public:
  // Of a longer chain, a text has this many steps at its start and as many at its end.
  static constexpr int kStepsAtAnEnd = 8;

  // Refers to both, which must outlive it. With `whole` a text has every step of its chain, so
  // that the texts of a chain of n values have n^2 steps.
  Reasons(const Program& program, const PropagationResult& result, bool whole = false)
      : program_(program), result_(result), whole_(whole) {}

  // "argument 0 -> %y operand 0 -> result -> (120 more steps) -> %z operand 0 -> result".
  std::string Of(LeafId leaf);

 private:
  // The chain that ends at a canonical leaf.
  struct Chain {
    int32_t steps = -1;  // -1: not known yet
    LeafId origin;
    LeafId head;  // the value after the first kStepsAtAnEnd steps, or the leaf itself
  };

  const Chain& ChainOf(LeafId leaf);
  std::string OriginText(LeafId leaf);
  std::string StepText(LeafId leaf);              // the step that leads to `leaf`
  std::string Place(InstrId via, LeafId leaf);    // "operand 1", "result" or "result 2"
  int64_t PlaceNumber(InstrId via, LeafId leaf);  // see .cc

  const Program& program_;
  const PropagationResult& result_;
  const bool whole_;
  std::vector<Chain> chains_;                             // by leaf
  absl::flat_hash_map<InstrId, int64_t> first_argument_;  // of the entry's parameters
  // Of instructions with many operands or results: the place of each canonical leaf.
  absl::flat_hash_map<InstrId, absl::flat_hash_map<LeafId, int64_t>> places_;
};

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_PROPAGATION_REASONS_H_
