// SPDX-License-Identifier: Apache-2.0
// Finds the collectives that give the same in each iteration of a loop.
#ifndef SHARDCALL_PARTITIONER_PASS_INVARIANT_COLLECTIVES_H_
#define SHARDCALL_PARTITIONER_PASS_INVARIANT_COLLECTIVES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

struct InvariantCollectives {
  InstrId loop;
  bool only_elements = false;    // of its result is anything read
  std::vector<InstrId> moved;    // of the body, in its order: `carried`, and what they are made of
  std::vector<InstrId> carried;  // the collectives whose results the body reads
  // What the body does not compute any more: `carried`, and what nothing else reads there.
  absl::flat_hash_set<InstrId> dropped;
};

// Of each loop that has some. Loops whose computations have other callers, or read their parameter
// other than by its elements, are left out, and so are loops of one iteration. `room`: bytes of
// what the collectives may give; less what those give that were found, afterwards.
std::vector<InvariantCollectives> FindInvariantCollectives(const Module& m, int64_t* room);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_INVARIANT_COLLECTIVES_H_
