// SPDX-License-Identifier: Apache-2.0
// The lowering function of each opcode.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_TABLE_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_TABLE_H_

#include "shardcall/partitioner/runtime/lower/lower_op.h"

namespace shardcall {
inline namespace internal {

absl::Status LowerByOpcode(const LowerContext& context, Step* step);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_LOWER_TABLE_H_
