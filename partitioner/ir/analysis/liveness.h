// SPDX-License-Identifier: Apache-2.0
// Finds the instructions that results and side effects of a module depend on.
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_LIVENESS_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_LIVENESS_H_

#include <vector>

#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// An instruction is live if it is the root or a parameter of its computation, has a side effect (of
// its own or in a callee), or is an operand or control predecessor of a live one. All computations
// reachable from the entry are treated as called, even by dead instructions. O(instructions).
class Liveness {
 public:
  Liveness(const Module& module, EffectsAt at);

  bool Has(InstrId id) const { return instructions_[id.value]; }
  // By computation: whether a chain of live instructions calls it from the entry.
  std::vector<bool> CalledComputations() const;

 private:
  void Walk(const Computation& comp, const Effects& effects);

  const Module& module_;
  std::vector<CompId> post_order_;
  std::vector<bool> instructions_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_LIVENESS_H_
