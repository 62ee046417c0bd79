// SPDX-License-Identifier: Apache-2.0
// An order of instructions that does not depend on names nor on the order of the text, for what
// must decide alike for equal modules.
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_CANONICAL_ORDER_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_CANONICAL_ORDER_H_

#include <cstdint>
#include <vector>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// By instruction: its position in post-order from the roots by operand number, with that of a
// called computation's root before the call. Unreachable instructions come last.
std::vector<uint32_t> CanonicalOrder(const Module& module);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_CANONICAL_ORDER_H_
