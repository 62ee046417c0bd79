// SPDX-License-Identifier: Apache-2.0
// Tables that only some ops have a row in, and the compile-time check that an op which needs a row
// has one. What is known of every op is a column of opcodes.inc.
#ifndef SHARDCALL_PARTITIONER_IR_ROW_BY_OPCODE_H_
#define SHARDCALL_PARTITIONER_IR_ROW_BY_OPCODE_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/opcode.h"

namespace shardcall {
inline namespace internal {

// The row whose `opcode` is that one, or null.
template <typename Row, size_t N>
constexpr const Row* RowByOpcode(const Row (&rows)[N], Opcode opcode) {
  for (const Row& row : rows) {
    if (row.opcode == opcode) return &row;
  }
  return nullptr;
}

// The names in an op's columns, and its traits, for checks at compile time.
struct OpcodeNames {
  absl::string_view rule, sized, lower;
  uint32_t traits;
};
inline constexpr OpcodeNames kOpcodeNames[] = {
#define SHARDCALL_OP(opcode, text, attrs, arity, shape, rule, strategy, sized, lower, stablehlo, \
                     traits)                                                                     \
  {#rule, #sized, #lower, traits},
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OP
};

// Whether every op with that name in that column has a row:
// static_assert(HasRowPerOp(kRows, &OpcodeNames::lower, "Alias")).
template <typename Row, size_t N>
constexpr bool HasRowPerOp(const Row (&rows)[N], absl::string_view OpcodeNames::* column,
                           absl::string_view name) {
  for (int k = 0; k < kNumOpcodes; ++k) {
    if (kOpcodeNames[k].*column != name) continue;
    if (RowByOpcode(rows, static_cast<Opcode>(k)) == nullptr) return false;
  }
  return true;
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ROW_BY_OPCODE_H_
