// SPDX-License-Identifier: Apache-2.0
// The names of HLO's types and ops in StableHLO.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_NAMES_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_NAMES_H_

#include <string>

#include "shardcall/partitioner/ir/opcode.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall::inline internal {

// "f32", "i1"; null for unsupported types.
const char* StableHloTypeName(ElementType type);
// The op of the dialect for ops that have only operands; empty for others.
std::string StableHloPlainOp(Opcode op);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_NAMES_H_
