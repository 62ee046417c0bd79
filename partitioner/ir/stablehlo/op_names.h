// SPDX-License-Identifier: Apache-2.0
// The names of StableHLO operations in the table of ops, for tables that are made at compile time.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_OP_NAMES_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_OP_NAMES_H_

#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/opcode.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

inline constexpr absl::string_view kOpNames[] = {
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  stablehlo,
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP
};

// The operation that an opcode is there; empty if there is none.
constexpr absl::string_view NameOf(Opcode opcode) { return kOpNames[static_cast<int>(opcode)]; }

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_OP_NAMES_H_
