// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/exchange/part_row.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace shardcall {
inline namespace internal {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);
// More parts are not put into one row.
constexpr size_t kMostParts = 32;

class RowMaker {
 public:
  RowMaker(const ShardRanges& ranges, absl::Span<const RangePart> parts)
      : ranges_(ranges), parts_(parts), needs_(ranges.num_shards), place_(parts.size()) {
    std::iota(place_.begin(), place_.end(), size_t{0});
  }

  std::optional<PartRow> Make() {
    if (parts_.size() > kMostParts || !FindNeighbours()) return std::nullopt;
    JoinPlaces();
    PartRow row;
    row.from.resize(ranges_.num_shards);
    if (!NeedsOneOfEachPlace() || !FillPlaces(&row) || !SetWindows(&row)) return std::nullopt;
    return row;
  }

 private:
  // What each shard needs, by where it begins in its range; and which parts follow which. False if
  // they do not follow each other at once.
  bool FindNeighbours() {
    for (size_t k = 0; k < parts_.size(); ++k) {
      for (const auto& [source, target] : parts_[k].pairs) needs_[target].push_back(k);
    }
    for (int64_t i = 0; i < ranges_.num_shards; ++i) {
      std::vector<size_t>& needs = needs_[i];
      std::stable_sort(needs.begin(), needs.end(),
                       [&](size_t a, size_t b) { return parts_[a].to[i] < parts_[b].to[i]; });
      for (size_t q = 1; q < needs.size(); ++q) {
        const size_t a = needs[q - 1], b = needs[q];
        if (parts_[a].to[i] + parts_[a].size != parts_[b].to[i]) return false;
        follows_.insert({a, b});
      }
    }
    return true;
  }

  bool Join(size_t a, size_t b) {
    const size_t from = place_[b], to = place_[a];
    if (from == to) return false;
    std::replace(place_.begin(), place_.end(), from, to);
    return true;
  }

  // One place for all that follow one place, and for all that one follows.
  void JoinPlaces() {
    for (bool joined = true; joined;) {
      joined = false;
      for (const auto& [a, b] : follows_) {
        for (const auto& [c, d] : follows_) {
          if (place_[a] == place_[c]) joined |= Join(b, d);
          if (place_[b] == place_[d]) joined |= Join(a, c);
        }
      }
    }
  }

  bool NeedsOneOfEachPlace() const {
    for (const std::vector<size_t>& needs : needs_) {
      std::set<size_t> seen;
      for (const size_t k : needs) {
        if (!seen.insert(place_[k]).second) return false;
      }
    }
    return true;
  }

  // The places in their order, and where the parts begin in them.
  bool FillPlaces(PartRow* row) {
    std::vector<size_t> next(parts_.size(), kNone);
    std::vector<bool> has_next(parts_.size()), has_previous(parts_.size()), follows(parts_.size());
    for (const auto& [a, b] : follows_) {
      next[place_[a]] = place_[b];
      follows[place_[b]] = has_previous[b] = has_next[a] = true;
    }
    at_.resize(parts_.size());
    size_t filled = 0;
    for (size_t first = 0; first < parts_.size(); ++first) {
      if (place_[first] != first || follows[first]) continue;
      for (size_t p = first; p != kNone; p = next[p]) {
        RowPlace place;
        for (size_t k = 0; k < parts_.size(); ++k) {
          if (place_[k] == p) place.size = std::max(place.size, parts_[k].size);
        }
        for (size_t k = 0; k < parts_.size(); ++k) {
          if (place_[k] != p) continue;
          const int64_t room = place.size - parts_[k].size;
          if (room > 0 && has_next[k] && has_previous[k]) return false;
          place.members.push_back({k, has_next[k] ? room : 0});
          at_[k] = row->size + place.members.back().at;
        }
        filled += place.members.size();
        row->size += place.size;
        row->places.push_back(std::move(place));
      }
    }
    return filled == parts_.size();  // others follow each other around
  }

  bool SetWindows(PartRow* row) const {
    int64_t first = 0, last = row->size, most = ranges_.length;
    for (const RangePart& p : parts_) most = std::max(most, ranges_.length + 2 * p.size);
    for (int64_t i = 0; i < ranges_.num_shards; ++i) {
      if (needs_[i].empty()) continue;
      const size_t k = needs_[i][0];
      row->from[i] = at_[k] - parts_[k].to[i];
      first = std::min(first, row->from[i]);
      last = std::max(last, row->from[i] + ranges_.length);
    }
    last = std::max(last, first + ranges_.length);  // also where none is needed
    row->before = -first;
    row->after = last - row->size;
    row->size = last - first;
    for (int64_t i = 0; i < ranges_.num_shards; ++i) {
      row->from[i] = needs_[i].empty() ? 0 : row->from[i] + row->before;
    }
    return row->size <= most;
  }

  const ShardRanges& ranges_;
  const absl::Span<const RangePart> parts_;
  std::vector<std::vector<size_t>> needs_;       // by shard
  std::set<std::pair<size_t, size_t>> follows_;  // the second part follows the first one
  std::vector<size_t> place_;                    // by part: the first part of its place
  std::vector<int64_t> at_;                      // by part: where it begins, after those before
};

}  // namespace

std::optional<PartRow> PartsAsRow(const ShardRanges& ranges, absl::Span<const RangePart> parts) {
  if (parts.empty()) return std::nullopt;
  return RowMaker(ranges, parts).Make();
}

}  // namespace internal
}  // namespace shardcall
