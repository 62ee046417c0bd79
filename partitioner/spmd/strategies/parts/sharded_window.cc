// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/parts/sharded_window.h"

#include <algorithm>

#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

std::optional<ShardedWindow> WindowOfDilated(int64_t pad_low, int64_t pitch, int64_t extent,
                                             int64_t shards, int64_t step, int64_t length,
                                             bool may_begin_anywhere) {
  const bool alike = step % pitch == 0;
  if (!alike && !may_begin_anywhere) return std::nullopt;
  ShardedWindow out;
  ShardRanges& r = out.ranges = ShardRanges::Of(extent, shards);
  if (alike) {
    r.step = step / pitch;
    r.offset = -FloorDiv(pad_low, pitch);  // rounded up
  } else {
    r.step = step;
    r.offset = pitch - 1 - pad_low;
    r.divisor = pitch;
    r.stop_offset = length - 1 - pad_low + pitch;
    out.surplus = pitch - 1;
  }
  for (int64_t i = 0; i < (alike ? 1 : shards); ++i) {
    const int64_t before = r.Start(i) * pitch - (step * i - pad_low);  // the first element
    if (before < length) r.length = std::max(r.length, (length - 1 - before) / pitch + 1);
    out.pad_low = alike ? before : pitch - 1;
    if (!alike) out.begins.push_back(out.pad_low - before);
  }
  if (r.length == 0) return std::nullopt;
  out.pad_high = length + out.surplus - out.pad_low - (r.length - 1) * pitch - 1;
  return out;
}

namespace {

std::optional<ShardedWindow> OfWindow(const Window& w, int s, int64_t extent, int64_t shards,
                                      int64_t step, int64_t length) {
  return WindowOfDilated(w.pad_low[s], w.lhs_dilate[s], extent, shards, step, length,
                         w.stride[s] == 1);
}

}  // namespace

std::optional<ShardedWindow> WindowOfResultTile(const Window& w, int s, int64_t extent,
                                                int64_t places, int64_t shards) {
  const int64_t tile = CeilDiv(places, shards);
  const int64_t reach = (w.size[s] - 1) * w.rhs_dilate[s] + 1;
  return OfWindow(w, s, extent, shards, tile * w.stride[s], (tile - 1) * w.stride[s] + reach);
}

std::optional<ShardedWindow> WindowOfKernelTile(const Window& w, int s, int64_t extent,
                                                int64_t places, int64_t shards) {
  if (w.reversal[s]) return std::nullopt;
  const int64_t tile = CeilDiv(w.size[s], shards);
  const int64_t reach = (tile - 1) * w.rhs_dilate[s] + 1;
  return OfWindow(w, s, extent, shards, tile * w.rhs_dilate[s], (places - 1) * w.stride[s] + reach);
}

}  // namespace internal
}  // namespace shardcall
