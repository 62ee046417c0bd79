// SPDX-License-Identifier: Apache-2.0
// Names that StableHLO has for types and ops of HLO.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_NAMES_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_NAMES_H_

#include <string>

#include "shardcall/partitioner/ir/opcode.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {

// "f32", "i1"; null for types that are not written.
const char* StableHloTypeName(ElementType type);
// The op of the dialect for those that take operands and nothing else; empty for others.
std::string StableHloPlainOp(Opcode op);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_NAMES_H_
