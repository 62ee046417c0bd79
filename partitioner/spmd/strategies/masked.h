// SPDX-License-Identifier: Apache-2.0
// Shared by the strategies that reduce over uneven shards, whose padding must not count.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_MASKED_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_MASKED_H_

#include <vector>

#include "shardcall/partitioner/spmd/localize/localizer.h"

namespace shardcall::inline internal {

// Dimensions of operand t that are uneven because a reduction factor is sharded.
std::vector<int> UnevenReduced(const LocalOp& op, int t);

// Sets padding in contracted dimensions of the two operands of a product to zero: of both, since
// it may hold inf or nan. Not along dimensions that were exchanged.
void MaskContracted(Localizer& l, const LocalOp& op, LocalIds* operands);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_MASKED_H_
