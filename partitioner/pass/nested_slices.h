// SPDX-License-Identifier: Apache-2.0
// Slices at run-time starts that read what another one has given.
#ifndef SHARDCALL_PARTITIONER_PASS_NESTED_SLICES_H_
#define SHARDCALL_PARTITIONER_PASS_NESTED_SLICES_H_

#include <vector>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// By instruction: whether it is a dynamic-slice, a dynamic-update-slice, or a gather or scatter of
// one window, whose starts are not all known to be in range, and whose operand consists of elements
// that another of these gave, or whose result is what another one reads, both through ops that
// hand elements on. O(instructions x depth of calls).
std::vector<bool> NestedSlices(const Module& module);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PASS_NESTED_SLICES_H_
