// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_BUILD_NEAREST_LITERAL_H_
#define SHARDCALL_PARTITIONER_IR_BUILD_NEAREST_LITERAL_H_

#include "shardcall/partitioner/ir/literal.h"
#include "shardcall/sharding/context.h"

namespace shardcall {
inline namespace internal {

// A scalar of the type that is near the number. Beyond the type's range, and for an infinity that
// it lacks, that is its least or greatest value: -128 for -inf in s8, false for a negative number.
const Literal* NearestLiteral(Context& context, ElementType type, double number);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_BUILD_NEAREST_LITERAL_H_
