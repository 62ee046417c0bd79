// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/exchange/part_row.h"

#include <algorithm>

namespace shardcall {
inline namespace internal {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

// What shard `shard` needs, by where it begins in its range.
std::vector<std::vector<size_t>> PartsOfShards(int64_t shards, absl::Span<const RangePart> parts) {
  std::vector<std::vector<size_t>> needs(shards);
  for (size_t k = 0; k < parts.size(); ++k) {
    for (const auto& [source, target] : parts[k].pairs) needs[target].push_back(k);
  }
  for (int64_t i = 0; i < shards; ++i) {
    std::stable_sort(needs[i].begin(), needs[i].end(),
                     [&](size_t a, size_t b) { return parts[a].to[i] < parts[b].to[i]; });
  }
  return needs;
}

// The parts in an order in which every two that a shard needs next to each other follow each other;
// empty if there is none.
std::vector<size_t> OrderOf(absl::Span<const std::vector<size_t>> needs,
                            absl::Span<const RangePart> parts) {
  std::vector<size_t> next(parts.size(), kNone), previous(parts.size(), kNone);
  for (size_t i = 0; i < needs.size(); ++i) {
    for (size_t q = 1; q < needs[i].size(); ++q) {
      const size_t a = needs[i][q - 1], b = needs[i][q];
      if (parts[a].to[i] + parts[a].size != parts[b].to[i]) return {};
      if ((next[a] != kNone && next[a] != b) || (previous[b] != kNone && previous[b] != a)) {
        return {};
      }
      next[a] = b;
      previous[b] = a;
    }
  }
  std::vector<size_t> order;
  for (size_t first = 0; first < parts.size(); ++first) {
    if (previous[first] != kNone) continue;
    for (size_t k = first; k != kNone; k = next[k]) order.push_back(k);
  }
  if (order.size() < parts.size()) order.clear();  // some follow each other around
  return order;
}

}  // namespace

std::optional<PartRow> PartsAsRow(const ShardRanges& ranges, absl::Span<const RangePart> parts) {
  const auto needs = PartsOfShards(ranges.num_shards, parts);
  PartRow row = {.order = OrderOf(needs, parts), .from = std::vector<int64_t>(ranges.num_shards)};
  if (row.order.empty()) return std::nullopt;
  std::vector<int64_t> at(parts.size());
  int64_t most = ranges.length;
  for (const size_t k : row.order) {
    at[k] = row.size;
    row.size += parts[k].size;
    most = std::max(most, ranges.length + 2 * parts[k].size);
  }
  int64_t first = 0, last = row.size;
  for (int64_t i = 0; i < ranges.num_shards; ++i) {
    if (needs[i].empty()) continue;
    const size_t k = needs[i][0];
    row.from[i] = at[k] - parts[k].to[i];
    first = std::min(first, row.from[i]);
    last = std::max(last, row.from[i] + ranges.length);
  }
  last = std::max(last, first + ranges.length);  // also where none is needed
  row.before = -first;
  row.after = last - row.size;
  row.size = last - first;
  if (row.size > most) return std::nullopt;
  for (int64_t i = 0; i < ranges.num_shards; ++i) {
    row.from[i] = needs[i].empty() ? 0 : row.from[i] + row.before;
  }
  return row;
}

}  // namespace internal
}  // namespace shardcall
