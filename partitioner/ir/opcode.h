// SPDX-License-Identifier: Apache-2.0
// The one table of HLO opcodes. Each row: enumerator, text, kind of attribute
// record, number of operands (-1: any), and traits.
#ifndef SHARDCALL_PARTITIONER_IR_OPCODE_H_
#define SHARDCALL_PARTITIONER_IR_OPCODE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/attributes.h"

namespace shardcall {

enum class Opcode : uint8_t {
#define SHARDCALL_OPCODE(name, text, attrs, arity, traits) name,
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OPCODE
};

// Bits of the traits column.
inline constexpr uint32_t kElementwise = 1;     // result element = f(operand elements there)
inline constexpr uint32_t kCommutative = 2;
inline constexpr uint32_t kCollectiveOp = 4;    // talks to other devices
inline constexpr uint32_t kCallsComputation = 8;
inline constexpr uint32_t kSideEffect = 16;     // by itself, whatever its attributes
inline constexpr uint32_t kAsyncForm = 32;

inline constexpr int kNumOpcodes = 0
#define SHARDCALL_OPCODE(name, text, attrs, arity, traits) +1
#include "shardcall/partitioner/ir/opcodes.inc"
#undef SHARDCALL_OPCODE
    ;

struct OpcodeInfo {
  absl::string_view text;
  AttrKind attrs;
  int arity;
  uint32_t traits;
};
const OpcodeInfo& GetOpcodeInfo(Opcode opcode);
inline absl::string_view OpcodeText(Opcode opcode) { return GetOpcodeInfo(opcode).text; }
inline bool HasTrait(Opcode opcode, uint32_t trait) { return GetOpcodeInfo(opcode).traits & trait; }
// False if there is no such opcode.
bool OpcodeFromText(absl::string_view text, Opcode* opcode);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_OPCODE_H_
