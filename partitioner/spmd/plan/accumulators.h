// SPDX-License-Identifier: Apache-2.0
// Accumulators: values that a loop carries and only adds to, or scales. The gradients of
// micro-batches are accumulated so, their moving averages, and the gradient of a weight that each
// step of a recurrence uses.
//
// Example: a body that ends in tuple(..., add(get-tuple-element(p, 2), x)), where nothing else
// reads element 2, accumulates the element.
//
// Beside them stacks: arrays of which each iteration of a loop replaces a part that it does not
// read, as `scan` does with the results of its steps. The gradients of layers are stacked so.
#ifndef SHARDCALL_PARTITIONER_SPMD_PLAN_ACCUMULATORS_H_
#define SHARDCALL_PARTITIONER_SPMD_PLAN_ACCUMULATORS_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/import/program.h"
#include "shardcall/partitioner/ir/analysis/passed_sums.h"

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

struct Stack {
  InstrId loop;
  int leaf = 0;    // of what the loop carries
  InstrId result;  // the get-tuple-element that alone reads the leaf after the loop
};

struct Accumulators {
  absl::flat_hash_map<InstrId, Accumulator> sums;  // by the last op that adds (kAddsOperands)
  // By the op that replaces a part of the first operand by the second (kReplacesPart), and by the
  // `result`: that op.
  absl::flat_hash_map<InstrId, Stack> stacks;
  absl::flat_hash_map<InstrId, InstrId> stack_ops;
};

// All accumulators of a program. A body that several loops share has none. `products`: by which
// they may be scaled.
Accumulators FindAccumulators(const Program& program, PassedProducts products);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_PLAN_ACCUMULATORS_H_
