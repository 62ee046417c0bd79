// SPDX-License-Identifier: Apache-2.0
// Shared by the strategies that fetch ranges of other shards.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCHED_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCHED_H_

#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/strategies/fetch.h"

namespace shardcall::inline internal {

// The global index along `dim` of each element of the local result, as an array of the shape of
// `like`.
InstrId ResultIndex(Localizer& l, const LocalOp& op, InstrId like, int dim);

// EmitFetch of `x`, which is operand k of the op, perhaps changed already.
InstrId FetchOperand(Localizer& l, const LocalOp& op, int k, InstrId x, int dim,
                     absl::Span<const AxisRef> axes, const FetchSpec& spec);

// `value` as s32, broadcast to the shape of `like`.
InstrId Splat(GraphBuilder& b, int64_t value, InstrId like);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCHED_H_
