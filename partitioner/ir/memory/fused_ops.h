// SPDX-License-Identifier: Apache-2.0
// The values that a compiler computes where they are used, so that they need no memory, as XLA's
// instruction fusion does: elementwise ops, broadcasts and ops that move elements, if only such
// ops, reductions and updates use them, and if all of these are computed together, or if it is
// cheap to compute them for each.
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_FUSED_OPS_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_FUSED_OPS_H_

#include <vector>

#include "shardcall/partitioner/ir/memory/memory_rules.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Whether the op is computed element by element, from elements of its operands.
bool IsByElement(const Module& m, InstrId id);

// Whether it is a broadcast of one element.
bool IsOfOneElement(const Module& m, InstrId id);

// By instruction.
struct FusedOps {
  std::vector<bool> fused;  // it is computed at its users, and has no memory
  std::vector<bool> takes;  // it reads operands that are computed on the way to it
  // It has memory, for users that cannot compute it, while the others do.
  std::vector<bool> recomputed;
  // It is the result of a library call, which writes it beside what it reads.
  std::vector<bool> called;
};
FusedOps FindFusedOps(const Module& m, const MemoryRules& rules);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_FUSED_OPS_H_
