// SPDX-License-Identifier: Apache-2.0
// The parts of an exchange one after the other, so that the range of each shard is a window of that
// row. So halos are joined with what a shard has: it needs the memory of the row, and is copied
// once, by whoever reads the window.
//
// Example: shards of 3 of 10 elements, each of which needs [3i - i % 2, 3i + 3). The row is one
// element of the shard before and the three of its own; the window begins at 1 on even shards, at 0
// on odd ones.
#ifndef SHARDCALL_SHARDING_EXCHANGE_PART_ROW_H_
#define SHARDCALL_SHARDING_EXCHANGE_PART_ROW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "shardcall/sharding/exchange/ranges.h"

namespace shardcall {
inline namespace internal {

// A place in the row. Parts share one if they stand beside the same part; each shard needs one of
// them at most.
struct RowPlace {
  struct Member {
    size_t part;
    int64_t at;  // where it begins in the place
  };
  std::vector<Member> members;
  int64_t size = 0;  // of the largest
};

struct PartRow {
  std::vector<RowPlace> places;
  // Elements that no shard needs, before and after the places.
  int64_t before = 0, after = 0;
  std::vector<int64_t> from;  // by shard: where its range begins, counted from those before
  int64_t size = 0;           // of all
};

// None if some shard needs two parts that do not follow each other, if parts follow each other
// around, if parts of unlike sizes stand between the same ones, or if the row would have more
// elements than a range with the largest part on each side.
std::optional<PartRow> PartsAsRow(const ShardRanges& ranges, absl::Span<const RangePart> parts);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_EXCHANGE_PART_ROW_H_
