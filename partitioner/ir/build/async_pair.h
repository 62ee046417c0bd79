// SPDX-License-Identifier: Apache-2.0
// The start and the done of a collective, in the forms that HLO has for it: all-gather-start and
// its kin, or an async-start of a computation that holds the collective alone.
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_ASYNC_PAIR_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_ASYNC_PAIR_H_

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The start of a collective of operands of these shapes, to be added to `out` with its operands.
// Keeps its name and what else it has; `out` gets the computation that an async-start calls.
Instruction AsyncStartOf(const Instruction& collective, absl::Span<const Shape* const> operands,
                         Module* out);
// The done of that start, with the shape of the collective's result. It has no name and metadata.
Instruction AsyncDoneOf(const Instruction& start, const Shape* result);

// The op that an async-start wraps, if its computation is a collective over parameters, which are
// arrays, and nothing else. Invalid for other computations, which may compute or call handlers.
InstrId WrappedCollective(const Module& module, const Instruction& start);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_ASYNC_PAIR_H_
