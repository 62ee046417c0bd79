// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_SIMPLIFY_SLICED_PADS_H_
#define SHARDCALL_PARTITIONER_IR_SIMPLIFY_SLICED_PADS_H_

#include <optional>

#include "shardcall/partitioner/ir/build/expansion.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// A slice, element by element, of what is padded around, which nobody annotates, is a pad by other
// amounts, perhaps negative ones; a slice where all are, and what was padded where none is left.
// Stencils are written so: u = jnp.pad(x, 1), then u[2:] + u[:-2] - 2 * u[1:-1]. Each of these
// needs a row of a neighbor, where the padded array has shards of other sizes than x. None for
// other slices.
std::optional<CallExpansion> ReadSliceOfPad(const Module& module, InstrId slice);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SIMPLIFY_SLICED_PADS_H_
