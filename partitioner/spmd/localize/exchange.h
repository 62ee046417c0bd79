// SPDX-License-Identifier: Apache-2.0
// Halo exchanges as HLO.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_EXCHANGE_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_EXCHANGE_H_

#include "shardcall/partitioner/spmd/localize/emitter.h"
#include "shardcall/sharding/exchange/ranges.h"

namespace shardcall {
inline namespace internal {

// Elements [from, from + size) of dimension `dim` of x, where `from` is by shard of `axes`.
InstrId CutByShard(Emitter& e, InstrId x, int dim, absl::Span<const AxisRef> axes,
                   absl::Span<const int64_t> from, int64_t size);

// x: the local shard; dimension `dim` is sharded along `axes`. The result has `length` elements
// there. The emitter's cause is recorded with each collective.
InstrId EmitExchange(Emitter& e, InstrId x, int dim, absl::Span<const AxisRef> axes,
                     const ShardRanges& ranges);

// The place in the whole dimension of each element of what EmitExchange has made, s32 of its dims.
InstrId PlacesOf(Emitter& e, InstrId x, int dim, absl::Span<const AxisRef> axes,
                 const ShardRanges& ranges);

// What EmitExchange has made, with `fill` (a scalar) wherever an element is outside of
// [0, extent). No code if no shard has such elements.
InstrId FillOutside(Emitter& e, InstrId x, int dim, absl::Span<const AxisRef> axes,
                    const ShardRanges& ranges, InstrId fill);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_EXCHANGE_H_
