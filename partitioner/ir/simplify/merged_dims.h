// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_SIMPLIFY_MERGED_DIMS_H_
#define SHARDCALL_PARTITIONER_IR_SIMPLIFY_MERGED_DIMS_H_

#include <optional>

#include "shardcall/partitioner/ir/build/expansion.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// A reduction, or a product of two arrays, over a dimension that a reshape merged of several: over
// these, as shards along more than the first of them are none of the merged dimension. So are
// jnp.vdot, and norms and argmax of arrays as vectors. None where what is reshaped is annotated.
std::optional<CallExpansion> ReadReduceOfMerged(const Module& module, InstrId id);
std::optional<CallExpansion> ReadDotOfMerged(const Module& module, InstrId id);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SIMPLIFY_MERGED_DIMS_H_
