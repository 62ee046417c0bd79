// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/sharded_window.h"

#include "shardcall/sharding/sharding.h"

namespace shardcall::inline internal {
namespace {

// Shard i needs [step * i - w.pad_low, .. + length) of the dilated base, whose elements lie at the
// multiples of the dilation.
std::optional<ShardedWindow> OfDilatedRanges(const Window& w, int s, int64_t extent, int64_t shards,
                                             int64_t step, int64_t length) {
  const int64_t pitch = w.lhs_dilate[s];
  if (step % pitch != 0) return std::nullopt;
  const int64_t first = -FloorDiv(w.pad_low[s], pitch);  // rounded up
  ShardedWindow out;
  out.pad_low = first * pitch + w.pad_low[s];
  const int64_t rest = length - out.pad_low;  // from the first element on
  if (rest <= 0) return std::nullopt;
  out.ranges = ShardRanges::Of(extent, shards);
  out.ranges.step = step / pitch;
  out.ranges.offset = first;
  out.ranges.length = (rest - 1) / pitch + 1;
  out.pad_high = (rest - 1) % pitch;
  return out;
}

}  // namespace

std::optional<ShardedWindow> WindowOfResultTile(const Window& w, int s, int64_t extent,
                                                int64_t places, int64_t shards) {
  const int64_t tile = CeilDiv(places, shards);
  const int64_t reach = (w.size[s] - 1) * w.rhs_dilate[s] + 1;
  return OfDilatedRanges(w, s, extent, shards, tile * w.stride[s],
                         (tile - 1) * w.stride[s] + reach);
}

std::optional<ShardedWindow> WindowOfKernelTile(const Window& w, int s, int64_t extent,
                                                int64_t places, int64_t shards) {
  if (w.reversal[s]) return std::nullopt;
  const int64_t tile = CeilDiv(w.size[s], shards);
  const int64_t reach = (tile - 1) * w.rhs_dilate[s] + 1;
  return OfDilatedRanges(w, s, extent, shards, tile * w.rhs_dilate[s],
                         (places - 1) * w.stride[s] + reach);
}

}  // namespace shardcall::inline internal
