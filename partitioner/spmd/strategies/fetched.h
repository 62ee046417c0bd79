// SPDX-License-Identifier: Apache-2.0
// What the strategies share that fetch ranges of other shards.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCHED_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCHED_H_

#include "shardcall/partitioner/spmd/localize/localizer.h"
#include "shardcall/partitioner/spmd/strategies/fetch.h"

namespace shardcall::inline internal {

// Index of the result element, along `dim`, as an array of the shape of `like`.
InstrId ResultIndex(Localizer& l, const LocalOp& op, InstrId like, int dim);

// EmitFetch of operand k of the op, or of what it became.
InstrId FetchOperand(Localizer& l, const LocalOp& op, int k, InstrId x, int dim,
                     absl::Span<const AxisRef> axes, const FetchSpec& spec);

// That s32 in the shape of `like`.
InstrId Splat(GraphBuilder& b, int64_t value, InstrId like);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCHED_H_
