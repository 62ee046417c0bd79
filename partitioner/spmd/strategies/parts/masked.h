// SPDX-License-Identifier: Apache-2.0
// Shared by the strategies that reduce over uneven shards, whose padding must not count.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_MASKED_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_MASKED_H_

#include <vector>

#include "shardcall/partitioner/spmd/localize/op_builder.h"

namespace shardcall {
inline namespace internal {

// Dimensions of operand t that are uneven because a reduction factor is sharded.
std::vector<int> UnevenReduced(const LocalOp& op, int t);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_MASKED_H_
