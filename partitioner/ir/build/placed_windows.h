// SPDX-License-Identifier: Apache-2.0
// Slices and updates by other names: ops whose window is at a place that constants give.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_PLACED_WINDOWS_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_PLACED_WINDOWS_H_

#include <optional>

#include "shardcall/partitioner/ir/build/call_reader.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// What the op is by a plainer name: a dynamic-slice at constant starts is a slice; a scatter of one
// window that fits at a constant place is a dynamic-update-slice, of the update or of what a sum
// (or another reduction of two scalars) makes of it and what was there. `x.at[1:-1].set(y)` of JAX
// is such a scatter. None for all other ops.
//
// Rows at constant places with the same distance, as in `x[jnp.arange(0, 1024, 4)]`, are a strided
// slice, perhaps reversed; a scatter to such rows (`x.at[::2].add(y)`) combines x with y, padded
// between its rows, if these are not few in x.
std::optional<CallExpansion> ReadPlacedWindow(const Module& module, InstrId id);

// Its parts in strided_rows.cc.
std::optional<CallExpansion> ReadGatherOfRows(const Module& module, InstrId id);
std::optional<CallExpansion> ReadScatterOfRows(const Module& module, InstrId id);
// Whether the computation of a scatter gives the update, whatever there was.
bool ReplacesElements(const Module& module, CompId computation);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_PLACED_WINDOWS_H_
