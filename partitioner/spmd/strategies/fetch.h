// SPDX-License-Identifier: Apache-2.0
// Fetch: brings a range of a sharded dimension onto each device, where the
// range starts at an affine function of the shard's number. Slice, pad,
// concatenate and reverse on sharded dimensions are fetches.
//
// Example: 10 elements over 4 shards (tiles of 3), sliced [2:8]: six elements,
// tiles of 2; shard i needs [2 + 2i, 4 + 2i), which touches at most two shards.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCH_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCH_H_

#include <cstdint>
#include <vector>

#include "shardcall/partitioner/spmd/localize/emitter.h"

namespace shardcall::inline internal {

// Shard i of `num_shards` needs [step * i + offset, .. + length) of a dimension
// of `extent` elements in tiles of `tile`. What lies outside [0, extent) is
// filler.
struct FetchSpec {
  int64_t extent = 0, tile = 1, num_shards = 1;
  int64_t step = 0, offset = 0, length = 0;
};

// Pieces that a shard's range touches, at most, each sent in rounds of one
// permute (sources and targets unique).
struct FetchPlan {
  struct Round {
    std::vector<std::pair<int64_t, int64_t>> pairs;  // shard numbers, source to target
    bool moves = false;                              // some pair is not (i, i)
  };
  std::vector<std::vector<Round>> pieces;
  int64_t num_permutes = 0;  // rounds that move
  // All-gather and cut instead: no dearer.
  bool gather = false;
};
FetchPlan PlanFetch(const FetchSpec& spec);
// Bytes one device sends, for `bytes` in its shard.
double FetchBytes(const FetchSpec& spec, double bytes);

// x: the local shard under `axes` along `dim`. The result has `length` elements
// there. The emitter's cause is recorded with each collective.
InstrId EmitFetch(Emitter& e, InstrId x, int dim, absl::Span<const AxisRef> axes,
                  const FetchSpec& spec);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCH_H_
