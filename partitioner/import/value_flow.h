// SPDX-License-Identifier: Apache-2.0
// The values that loops, branches and calls pass on.
#ifndef SHARDCALL_PARTITIONER_IMPORT_VALUE_FLOW_H_
#define SHARDCALL_PARTITIONER_IMPORT_VALUE_FLOW_H_

#include "absl/container/inlined_vector.h"
#include "shardcall/partitioner/import/program.h"

namespace shardcall {
inline namespace internal {

// Leaf k of `from` becomes leaf k of `to`.
struct ValueFlow {
  InstrId from, to;
};

// What an op with kControlFlow passes to the parameters of its computations and to its result. A
// loop's parameters are left out, since their leaves are those of its result (LeafTable).
absl::InlinedVector<ValueFlow, 4> ValueFlows(const Module& module, InstrId id);

// The leaves of all operands, in their order; not canonical.
absl::InlinedVector<LeafId, 8> OperandLeaves(const Program& program, InstrId id);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IMPORT_VALUE_FLOW_H_
