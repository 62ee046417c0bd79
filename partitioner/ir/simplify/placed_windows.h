// SPDX-License-Identifier: Apache-2.0
// Slices and updates by other names: ops whose window is at a place that constants give.
#ifndef SHARDCALL_PARTITIONER_IR_SIMPLIFY_PLACED_WINDOWS_H_
#define SHARDCALL_PARTITIONER_IR_SIMPLIFY_PLACED_WINDOWS_H_

#include <optional>

#include "shardcall/partitioner/ir/build/expansion.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// What the op is by a plainer name; none if it has none. A dynamic-slice at constant starts is a
// slice; a scatter of one window that fits at a constant place is a dynamic-update-slice, of the
// update or of what a sum (or another reduction of two scalars) makes of it and what was there.
// `x.at[1:-1].set(y)` of JAX is such a scatter.
std::optional<CallExpansion> ReadPlacedSlice(const Module& module, InstrId dynamic_slice);
std::optional<CallExpansion> ReadPlacedScatter(const Module& module, InstrId scatter);
// A stride over one row is none, and a dynamic-update-slice of all is its update.
std::optional<CallExpansion> ReadSliceOfRow(const Module& module, InstrId slice);
std::optional<CallExpansion> ReadUpdateOfAll(const Module& module, InstrId dynamic_update_slice);

// Rows at constant places with the same distance, as in `x[jnp.arange(0, 1024, 4)]`, are a strided
// slice, perhaps reversed; a scatter to such rows (`x.at[::2].add(y)`) combines x with y, padded
// between its rows, if these are not few in x. See strided_rows.cc.
std::optional<CallExpansion> ReadGatherOfRows(const Module& module, InstrId gather);
std::optional<CallExpansion> ReadScatterOfRows(const Module& module, InstrId scatter);

// A gather or scatter that takes the same part of a dimension at each place is one of that part
// alone, which is cut first; what the scatter makes of it is put back. See parts_of_rows.cc.
std::optional<CallExpansion> ReadGatherOfParts(const Module& module, InstrId gather);
std::optional<CallExpansion> ReadScatterOfParts(const Module& module, InstrId scatter);

// Whether the computation of a scatter gives the update, whatever there was.
bool ReplacesElements(const Module& module, CompId computation);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SIMPLIFY_PLACED_WINDOWS_H_
