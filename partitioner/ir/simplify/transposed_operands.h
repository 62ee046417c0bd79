// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_SIMPLIFY_TRANSPOSED_OPERANDS_H_
#define SHARDCALL_PARTITIONER_IR_SIMPLIFY_TRANSPOSED_OPERANDS_H_

#include <optional>

#include "shardcall/partitioner/ir/build/expansion.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// A product of transposed parameters, of the parameters themselves, by its dimension numbers. An
// embedding that is read by rows and, transposed, makes the logits is one value then, which is
// gathered once. None where a transpose is annotated, or changes the order of dimensions of the
// result. Other values, and one side of a product of an array with itself, stay transposed: they
// may have other states so.
std::optional<CallExpansion> ReadDotOfTransposed(const Module& module, InstrId id);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SIMPLIFY_TRANSPOSED_OPERANDS_H_
