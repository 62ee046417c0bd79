// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_IDENTITY_CONSTANT_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_IDENTITY_CONSTANT_H_

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The value of a scalar constant; null for all else, and where the text left it out.
const Literal* ScalarLiteral(const Module& m, InstrId id);

// Whether the instruction is a scalar constant, and the identity of the monoid (monoid.h). Of a
// float sum both zeros are.
bool IsIdentityConstant(const Module& m, InstrId id, Opcode monoid);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_IDENTITY_CONSTANT_H_
