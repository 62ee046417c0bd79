// SPDX-License-Identifier: Apache-2.0
// Builds an op for operands of other sizes than its shape states, with attributes and shapes that
// follow from the sizes.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_SIZED_OP_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_SIZED_OP_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/build/checked_builder.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// How an op is handled for dynamic shapes, by its row of the op table.
enum class SizedForm {
  kMade,      // it is built for the actual sizes
  kPasses,    // a loop, branch or call, whose values have their actual sizes
  kFullOnly,  // only if all sizes equal the bounds
};
SizedForm SizedFormOf(Opcode opcode);

// Appends the op to the builder's computation. `bounds`: the written shapes of the op's operands;
// `operands`: values of at most these sizes, in the builder's computation. If two operands must
// have equal sizes and one is static, or both are dynamic, the first elements of the larger one
// are taken, as XLA does. E310: the op is undefined, or not implemented, for these sizes.
absl::StatusOr<InstrId> BuildSizedOp(CheckedBuilder& builder, const Instruction& instr,
                                     absl::Span<const Shape* const> bounds,
                                     absl::InlinedVector<InstrId, 4> operands);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_SIZED_OP_H_
