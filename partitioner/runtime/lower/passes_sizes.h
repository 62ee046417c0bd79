// SPDX-License-Identifier: Apache-2.0
// Checks that values keep their actual sizes where an op only passes them on.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_PASSES_SIZES_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_PASSES_SIZES_H_

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// Whether some leaf has a dynamic dimension.
bool HasDynamicLeaf(const Shape& shape);

// False for an op without a step, or one that passes values on, if it treats a dynamic dimension
// as static. True for all others.
bool PassesWell(const Module& module, const Instruction& instr);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_PASSES_SIZES_H_
