// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_SIMPLIFY_SEPARATE_REDUCES_H_
#define SHARDCALL_PARTITIONER_IR_SIMPLIFY_SEPARATE_REDUCES_H_

#include <optional>

#include "shardcall/partitioner/ir/build/expansion.h"

namespace shardcall {
inline namespace internal {

// A reduction of several operands, each combined with its own kind alone (a sum and a maximum in
// one pass), as one reduction for each. Of one operand, there are partial results, whatever they
// start from, and those that nothing reads are dead.
std::optional<CallExpansion> ReadSeparateReduces(const Module& module, InstrId id);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SIMPLIFY_SEPARATE_REDUCES_H_
