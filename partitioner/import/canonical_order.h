// SPDX-License-Identifier: Apache-2.0
// An order of instructions that follows from the values alone, not from the text, so that equal
// programs are planned alike however they are written.
#ifndef SHARDCALL_PARTITIONER_IMPORT_CANONICAL_ORDER_H_
#define SHARDCALL_PARTITIONER_IMPORT_CANONICAL_ORDER_H_

#include "shardcall/partitioner/import/import_internal.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {

// The module with its computations in the order of their first calls, and in each of them the
// parameters by number, then what has effects, in its own order, then the root, each right behind
// what it needs, operand by operand, and that was not there yet; then annotations that nothing
// reads. A scheduled module has the order of its schedule. The same where it stands so already,
// else `place` has the old order. Takes time linear in the module.
InlinedModule InCanonicalOrder(InlinedModule inlined);

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_CANONICAL_ORDER_H_
