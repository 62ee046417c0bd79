// SPDX-License-Identifier: Apache-2.0
// Fetch, a generalized halo exchange: brings a range of a sharded dimension onto each device. The
// start of the range is an affine function of the shard's number. Slice, pad, concatenate and
// reverse on sharded dimensions are fetches.
//
// Example: 10 elements over 4 shards (tiles of 3), sliced [2:8]: six elements,
// tiles of 2; shard i needs [2 + 2i, 4 + 2i), which touches at most two shards.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCH_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCH_H_

#include <cstdint>
#include <vector>

#include "shardcall/partitioner/spmd/localize/emitter.h"

namespace shardcall::inline internal {

// Shard i of `num_shards` needs [step * i + offset, .. + length) of a dimension of `extent`
// elements in tiles of `tile`. Elements outside [0, extent) are undefined.
struct FetchSpec {
  int64_t extent = 0, tile = 1, num_shards = 1;
  int64_t step = 0, offset = 0, length = 0;
};

// The range of a shard touches at most pieces.size() tiles, a number that does not depend on the
// tiles' length: at most one more than there are shards. Each piece is sent in rounds of one
// collective-permute, in which sources and targets are unique.
struct FetchPlan {
  struct Round {
    std::vector<std::pair<int64_t, int64_t>> pairs;  // shard numbers, source to target
    bool moves = false;                              // some pair sends to another device
  };
  std::vector<std::vector<Round>> pieces;
  std::vector<int64_t> base;  // by shard: the tile of its first piece
  // The first piece is the first tile that a shard needs, not the one in which its range starts.
  bool from_first_tile = false;
  int64_t num_permutes = 0;  // number of rounds that send
  // All-gather and slice instead, since that sends no more.
  bool gather = false;
};
FetchPlan PlanFetch(const FetchSpec& spec);
// Bytes that one device sends, if its shard has `bytes`.
double FetchBytes(const FetchSpec& spec, double bytes);

// x: the local shard; dimension `dim` is sharded along `axes`. The result has `length` elements
// there. The emitter's cause is recorded with each collective.
InstrId EmitFetch(Emitter& e, InstrId x, int dim, absl::Span<const AxisRef> axes,
                  const FetchSpec& spec);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_FETCH_H_
