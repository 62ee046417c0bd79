// SPDX-License-Identifier: Apache-2.0
// Halo exchanges: each shard of a dimension needs a range of it that lies on other shards, too. The
// start of the range is an affine function of the shard's number, perhaps with a division. Slices,
// pads, concatenations, reversals and windows along sharded dimensions are such exchanges.
//
// Example: 10 elements in tiles of 3 on 4 shards, sliced [2:8]. The result has tiles of 2, so shard
// i needs [2 + 2i, 4 + 2i): shard 0 has element 2 and gets element 3 from shard 1.
#ifndef SHARDCALL_SHARDING_EXCHANGE_RANGES_H_
#define SHARDCALL_SHARDING_EXCHANGE_RANGES_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace shardcall {
inline namespace internal {

// a / b, rounded down, for b > 0.
inline int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0); }

// Shard i of `num_shards` holds the elements [tile * i, tile * (i + 1)) of a dimension of `extent`
// elements, and gets [Start(i), Start(i) + length), where Start(i) is
// scale * floor((step * i + offset) / divisor) + shift. It needs those before Stop(i). What it gets
// for others, and for elements outside of [begin, end), is undefined.
struct ShardRanges {
  int64_t extent = 0, tile = 1, num_shards = 1;
  int64_t step = 0, offset = 0, length = 0;
  int64_t begin = 0, end = 0;  // within [0, extent)
  int64_t scale = 1, divisor = 1, shift = 0;
  // Ranges that are not as long on all shards: Stop(i) is as Start(i), with this offset.
  std::optional<int64_t> stop_offset;
  // Behind the last element comes the first one: the dimension is a ring of whole tiles, and each
  // shard needs as many elements as it has, `offset` further on. The other members are as of `Of`.
  bool wraps = false;

  // A dimension of `extent` elements on `shards` shards, of which any element may be needed. The
  // ranges are to be set.
  static ShardRanges Of(int64_t extent, int64_t shards) {
    return {.extent = extent,
            .tile = (extent + shards - 1) / shards,
            .num_shards = shards,
            .end = extent};
  }
  int64_t At(int64_t shard, int64_t first) const {
    return scale * FloorDiv(step * shard + first, divisor) + shift;
  }
  int64_t Start(int64_t shard) const { return At(shard, offset); }
  int64_t Stop(int64_t shard) const {
    const int64_t last = Start(shard) + length;
    return stop_offset.has_value() ? std::min(At(shard, *stop_offset), last) : last;
  }
  bool IsAffine() const { return scale == 1 && divisor == 1 && shift == 0; }
  // Whether some shard's range has elements outside of [begin, end).
  bool LeavesBounds() const;

  friend bool operator==(const ShardRanges& a, const ShardRanges& b) = default;
};

// Part of each range: `size` elements that another shard sends (one collective-permute), or that
// each shard has itself. They are elements of the dimension at their true places, perhaps more
// than the receiver needs.
struct RangePart {
  int64_t size = 0;
  std::vector<std::pair<int64_t, int64_t>> pairs;  // source, target; empty: nobody needs it
  bool own = false;                                // nothing is sent
  std::vector<int64_t> from;  // by source: where the elements begin in its tile
  // By target: where they begin in its range. -size, just before the range, for others.
  std::vector<int64_t> to;
};

struct ExchangePlan {
  // The dimension is gathered, and each shard cuts its range out of it: that sends no more.
  bool gather = false;
  // Every range consists of the parts, one after the other. Otherwise they are to be put in place.
  bool in_a_row = false;
  std::vector<RangePart> parts;
  int num_collectives = 0;
  // Elements along the dimension that one shard sends; the mean, as edges send less.
  double sent = 0;
};

// The exchange that sends the fewest elements: of the messages by distance (each shard gets from
// the shard that is k further), those by place (the k-th tile of each range), and a gather.
// Linear in the number of shards, times the tiles that a range touches.
ExchangePlan PlanExchange(const ShardRanges& ranges);
// What all shards send of a part in bytes, and what one shard sends in an exchange, the mean, where
// an element of the dimension stands for `row_bits` bits: each array that is sent has whole bytes.
double SentBytes(const RangePart& part, double row_bits);
double SentBytes(const ExchangePlan& plan, const ShardRanges& ranges, double row_bits);
// The elements along the dimension that a shard needs and does not hold, the mean. No exchange
// sends fewer.
double NeededElements(const ShardRanges& ranges);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_EXCHANGE_RANGES_H_
