// SPDX-License-Identifier: Apache-2.0
// One op over operands of other sizes than its shape states: attributes and shapes
// that follow from the sizes are made anew.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_SIZED_OP_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_SIZED_OP_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/build/checked_builder.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {

// What becomes of an op where sizes are dynamic: its row says it.
enum class SizedForm {
  kMade,      // it is made for the sizes at hand
  kPasses,    // a loop, branch or call: its values have the sizes they have
  kFullOnly,  // only where all sizes are those of the bounds
};
SizedForm SizedFormOf(Opcode opcode);

// Appends the op to the builder's computation. `bounds`: the shapes of the op's
// operands as written; `operands`: values of at most these sizes, in the builder's
// computation. Where two operands must be equally large and one is static, or both
// are dynamic, the first elements of the larger are taken, as XLA does.
// E310: the op has no meaning, or none is known, for these sizes.
absl::StatusOr<InstrId> BuildSizedOp(CheckedBuilder& builder, const Instruction& instr,
                                     absl::Span<const Shape* const> bounds,
                                     absl::InlinedVector<InstrId, 4> operands);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_SIZED_OP_H_
