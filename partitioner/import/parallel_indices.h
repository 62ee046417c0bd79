// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters whose indices count along a dimension: `x[jnp.arange(n), labels]` reads row
// k of its operand for label k, so that a device that has both needs no other. HLO says the same
// with batching dimensions, which rules and strategies know.
#ifndef SHARDCALL_PARTITIONER_IMPORT_PARALLEL_INDICES_H_
#define SHARDCALL_PARTITIONER_IMPORT_PARALLEL_INDICES_H_

#include "shardcall/partitioner/import/import_internal.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {

// Asks that each such gather and scatter gets batching dimensions in place of those indices: where
// the index vector is a concatenation of which at most one operand does not count along a dimension
// of the operand's size. If all do, one stays. Sizes, numbers and the other indices stay.
void FindParallelIndices(const Module& module, ModuleEdit* edit);

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_PARALLEL_INDICES_H_
