// SPDX-License-Identifier: Apache-2.0
// Re-tiling: a dimension that stays sharded over the same axes gets tiles of another size. A
// sharding has tiles of ceil(D/n) elements, and those of more shards do not always add up to those
// of fewer: 10 elements lie in tiles of 3 over {a=2, b=2}, so that a gather over b leaves tiles of
// 6, where {a} has 5. The second shard then lacks element 5, which the first one sends to it.
#ifndef SHARDCALL_SHARDING_RESHARD_RETILE_H_
#define SHARDCALL_SHARDING_RESHARD_RETILE_H_

#include <cstdint>

#include "shardcall/sharding/context.h"
#include "shardcall/sharding/exchange/ranges.h"

namespace shardcall {
inline namespace internal {

// What the shards of a dimension of `size` elements need so that their tiles of `have` elements
// become tiles of `want`. Both tilings cover the dimension.
ShardRanges RetileRanges(int64_t size, int64_t shards, int64_t have, int64_t want);

struct RetileCost {
  double sent = 0;  // bytes that a device sends, the mean
  int collectives = 0;
};

// Among more shards the exchange is not planned, as that would take too long.
inline constexpr int64_t kMostRetiledShards = 4096;

// The cost of the exchange, where an element of the dimension stands for `row_bits` bits. The
// exchange is memoised in the Context. Linear in the number of shards.
RetileCost CostOfRetile(Context& context, int64_t size, int64_t shards, int64_t have, int64_t want,
                        double row_bits);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RESHARD_RETILE_H_
