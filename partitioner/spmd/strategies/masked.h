// SPDX-License-Identifier: Apache-2.0
// What the strategies share that sum over uneven shards, whose padding must not count.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_MASKED_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_MASKED_H_

#include <vector>

#include "shardcall/partitioner/spmd/localize/localizer.h"

namespace shardcall::inline internal {

// Dimensions of operand t that a sharded reduction factor makes uneven.
std::vector<int> UnevenReduced(const LocalOp& op, int t);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_MASKED_H_
