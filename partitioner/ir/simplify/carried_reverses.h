// SPDX-License-Identifier: Apache-2.0
// Reverses that are carried to where they cancel.
#ifndef SHARDCALL_PARTITIONER_IR_SIMPLIFY_CARRIED_REVERSES_H_
#define SHARDCALL_PARTITIONER_IR_SIMPLIFY_CARRIED_REVERSES_H_

#include <optional>

#include "shardcall/partitioner/ir/build/rewritten.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// A reverse of a sharded dimension exchanges whole shards. Ops that treat all places of a dimension
// alike (elementwise ones, slices, pads, windows, concatenations, broadcasts, transposes) may as
// well be done on the operand, mirrored, and their result reversed:
//   before:  r = reverse(x),  y = r + slice(r)...,  z = reverse(y)
//   after:   z = x + mirrored slice(x)...
// `lax.associative_scan(reverse=True)` of JAX is such a program, between two reverses. Reverses are
// carried through those ops that are connected, if fewer bytes are reversed then. Nothing is
// carried across an annotation (a sharding, or a frontend attribute): it is for the value as
// written. None if nothing changes.
std::optional<Rewritten> CarryReverses(const Module& module);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SIMPLIFY_CARRIED_REVERSES_H_
