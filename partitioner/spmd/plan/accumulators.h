// SPDX-License-Identifier: Apache-2.0
// Accumulators: values that a loop carries and only adds to, or scales. The gradients of
// micro-batches are accumulated so, their moving averages, and the gradient of a weight that each
// step of a recurrence uses.
//
// Example: a body that ends in tuple(..., add(get-tuple-element(p, 2), x)), where nothing else
// reads element 2, accumulates the element.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_ACCUMULATORS_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_ACCUMULATORS_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/import/program.h"

namespace shardcall {
inline namespace internal {

struct Accumulator {
  // An op that makes the next value of what was accumulated, its operand of that number.
  struct Step {
    InstrId op;
    int operand = 0;
  };
  InstrId loop;
  int leaf = 0;             // of what the loop carries
  std::vector<Step> steps;  // elementwise; from what is carried to the last op that adds
};

// By the last op of the body that adds (a trait, kAddsOperands).
using Accumulators = absl::flat_hash_map<InstrId, Accumulator>;

// All accumulators of a program. A body that several loops share has none. `products`: also those
// that are scaled (PassesSum).
Accumulators FindAccumulators(const Program& program, bool products);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_ACCUMULATORS_H_
