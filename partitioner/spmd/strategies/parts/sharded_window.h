// SPDX-License-Identifier: Apache-2.0
// Windows that slide over a sharded dimension.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_SHARDED_WINDOW_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_SHARDED_WINDOW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "shardcall/partitioner/ir/attributes.h"
#include "shardcall/sharding/exchange/ranges.h"

namespace shardcall {
inline namespace internal {

// What each shard needs of the base (the operand), and the padding that its window then has in
// place of that of the whole.
struct ShardedWindow {
  ShardRanges ranges;
  int64_t pad_low = 0, pad_high = 0;
  // Where shards begin at different phases of a dilated base: each computes `surplus` more places
  // of the result, and its own begin at place begins[shard].
  int64_t surplus = 0;
  std::vector<int64_t> begins;
};

// Shard i needs places [step * i - pad_low, .. + length) of a base of `extent` elements, of which
// one stands at every multiple of `pitch`. None if the shards begin at different phases, unless
// `may_begin_anywhere`, or if they see no element.
std::optional<ShardedWindow> WindowOfDilated(int64_t pad_low, int64_t pitch, int64_t extent,
                                             int64_t shards, int64_t step, int64_t length,
                                             bool may_begin_anywhere);

// Each shard computes its tile of the result: window `s` of `w` over a base of `extent` elements,
// of which `places` places are results. None if windows that move by more than one place begin at
// different phases of a dilated base.
std::optional<ShardedWindow> WindowOfResultTile(const Window& w, int s, int64_t extent,
                                                int64_t places, int64_t shards);
// Each shard has its tile of the window itself (of the kernel of a convolution), and computes its
// part of all results.
std::optional<ShardedWindow> WindowOfKernelTile(const Window& w, int s, int64_t extent,
                                                int64_t places, int64_t shards);

// A window of which some dimensions get other sizes and paddings. `window()` refers to it.
class ChangedWindow {
 public:
  explicit ChangedWindow(const Window& w)
      : w_(w),
        size_(w.size.begin(), w.size.end()),
        low_(w.pad_low.begin(), w.pad_low.end()),
        high_(w.pad_high.begin(), w.pad_high.end()) {}

  void SetPadding(int s, const ShardedWindow& on_shards) {
    low_[s] = on_shards.pad_low;
    high_[s] = on_shards.pad_high;
  }
  void SetSize(int s, int64_t size) { size_[s] = size; }
  Window window() const {
    Window w = w_;
    w.size = size_;
    w.pad_low = low_;
    w.pad_high = high_;
    return w;
  }

 private:
  const Window w_;
  std::vector<int64_t> size_, low_, high_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_PARTS_SHARDED_WINDOW_H_
