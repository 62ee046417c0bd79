// SPDX-License-Identifier: Apache-2.0
// Exchanges run on numbers: every shard must get the elements of its range, and no more may be sent
// than the ranges need.
#include "shardcall/sharding/exchange/ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/exchange/part_row.h"

namespace shardcall {
namespace {

constexpr int64_t kNothing = -1;

std::string Text(const ShardRanges& r) {
  return absl::StrCat(r.extent, " elements on ", r.num_shards, " shards: ", r.step, "i + ",
                      r.offset, ", ", r.length, " each, of [", r.begin, ", ", r.end, ")");
}

// Element x of the dimension has the value x; what nobody sent is kNothing.
std::vector<int64_t> RangeOf(const ShardRanges& r, const ExchangePlan& plan, int64_t shard) {
  std::vector<int64_t> range(r.length, kNothing);
  if (plan.gather) {
    for (int64_t q = 0; q < r.length; ++q) range[q] = r.Start(shard) + q;
    return range;
  }
  int64_t at = 0;
  for (const RangePart& part : plan.parts) {
    int64_t source = part.own ? shard : kNothing;
    for (const auto& [from, to] : part.pairs) {
      if (!part.own && to == shard) source = from;
    }
    const int64_t place = plan.in_a_row ? at : part.to[shard];
    at += part.size;
    if (source == kNothing) continue;
    for (int64_t k = 0; k < part.size; ++k) {
      const int64_t in_tile = part.from[source] + k;
      EXPECT_TRUE(in_tile >= 0 && in_tile < r.tile) << Text(r);
      if (place + k >= 0 && place + k < r.length) range[place + k] = source * r.tile + in_tile;
    }
  }
  EXPECT_TRUE(!plan.in_a_row || at == r.length) << Text(r);
  return range;
}

// The same by the row of the parts.
std::vector<int64_t> WindowOf(const ShardRanges& r, const ExchangePlan& plan, const PartRow& row,
                              int64_t shard) {
  std::vector<int64_t> all(row.before, kNothing);
  for (const RowPlace& place : row.places) {
    const size_t begin = all.size();
    all.resize(begin + place.size, kNothing);
    for (const auto& [k, at] : place.members) {
      const RangePart& part = plan.parts[k];
      EXPECT_TRUE(at >= 0 && at + part.size <= place.size) << Text(r);
      for (const auto& [source, target] : part.pairs) {
        if (target != shard) continue;
        for (int64_t q = 0; q < part.size; ++q) {
          EXPECT_EQ(all[begin + at + q], kNothing) << Text(r);
          all[begin + at + q] = source * r.tile + part.from[source] + q;
        }
      }
    }
  }
  all.resize(all.size() + row.after, kNothing);
  EXPECT_EQ(static_cast<int64_t>(all.size()), row.size) << Text(r);
  const int64_t first = row.from[shard];
  EXPECT_TRUE(first >= 0 && first + r.length <= row.size) << Text(r);
  return {all.begin() + first, all.begin() + first + r.length};
}

void ExpectRight(const ShardRanges& r) {
  const ExchangePlan plan = PlanExchange(r);
  std::optional<PartRow> row;
  if (!plan.gather && !plan.parts.empty()) row = PartsAsRow(r, plan.parts);
  for (int64_t i = 0; i < r.num_shards; ++i) {
    const std::vector<int64_t> range = RangeOf(r, plan, i);
    const std::vector<int64_t> window = row.has_value() ? WindowOf(r, plan, *row, i) : range;
    for (int64_t q = 0; q < r.length; ++q) {
      const int64_t element = r.Start(i) + q;
      if (element < r.begin || element >= std::min(r.end, r.Stop(i))) continue;
      ASSERT_EQ(range[q], element) << "shard " << i << ", " << Text(r);
      ASSERT_EQ(window[q], element) << "shard " << i << ", " << Text(r);
    }
  }
  int64_t lacking = 0;  // elements that some shard needs and does not hold
  for (int64_t i = 0; i < r.num_shards; ++i) {
    for (int64_t x = std::max(r.begin, r.Start(i)); x < std::min(r.end, r.Stop(i)); ++x) {
      lacking += x / r.tile != i;
    }
  }
  EXPECT_DOUBLE_EQ(NeededElements(r) * static_cast<double>(r.num_shards),
                   static_cast<double>(lacking))
      << Text(r);
  EXPECT_LE(NeededElements(r), plan.sent + 1e-9) << Text(r);
  for (const RangePart& part : plan.parts) {
    std::set<int64_t> sources, targets;
    for (const auto& [source, target] : part.pairs) {
      ASSERT_TRUE(sources.insert(source).second && targets.insert(target).second) << Text(r);
      ASSERT_TRUE(source >= 0 && source < r.num_shards) << Text(r);
    }
  }
  ASSERT_LE(plan.sent, static_cast<double>((r.num_shards - 1) * r.tile)) << Text(r);
}

ShardRanges Of(int64_t extent, int64_t shards, int64_t step, int64_t offset, int64_t length) {
  ShardRanges r = ShardRanges::Of(extent, shards);
  r.step = step;
  r.offset = offset;
  r.length = length;
  return r;
}

TEST(Exchange, EveryShardGetsItsRange) {
  for (int64_t shards : {2, 3, 4}) {
    for (int64_t extent = 1; extent <= 9; ++extent) {
      for (int64_t step = -4; step <= 6; ++step) {
        for (int64_t offset : {-7, -3, -1, 0, 1, 2, 5, 8}) {
          for (int64_t length : {1, 2, 3, 5, 9}) {
            ExpectRight(Of(extent, shards, step, offset, length));
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(Exchange, StartsMayBeRoundedDown) {
  for (int64_t divisor : {2, 3}) {
    for (int64_t step = 1; step <= 7; ++step) {
      for (int64_t offset : {-4, -1, 0, 2}) {
        for (int64_t scale : {1, 2}) {
          ShardRanges r = Of(13, 4, step, offset, 4);
          r.divisor = divisor;
          r.scale = scale;
          ExpectRight(r);
        }
      }
    }
  }
}

TEST(Exchange, RangesMayStopEarlier) {
  for (int64_t divisor : {1, 2, 3}) {
    for (int64_t step = 1; step <= 7; ++step) {
      for (int64_t offset : {-4, -1, 0, 2}) {
        for (int64_t longer : {0, 1, 3, 6}) {
          ShardRanges r = Of(13, 4, step, offset, 4);
          r.divisor = divisor;
          r.stop_offset = offset + longer;
          ExpectRight(r);
        }
      }
    }
  }
  // Elements at every second place, of which a shard has 33: 17 or 16 elements.
  ShardRanges r = Of(128, 8, 33, 0, 17);
  r.divisor = 2;
  const double by_length = PlanExchange(r).sent;
  r.stop_offset = 33;
  EXPECT_LT(PlanExchange(r).sent, by_length);
  EXPECT_EQ(PlanExchange(r).sent, 3 * 6.0 / 8);
}

TEST(Exchange, OnlyThePartThatIsAskedForCounts) {
  for (int64_t begin = 0; begin < 10; ++begin) {
    for (int64_t end = begin; end <= 10; ++end) {
      for (int64_t step : {1, 2, 3, 4}) {
        ShardRanges r = Of(10, 4, step, begin, 3);
        r.begin = begin;
        r.end = end;
        ExpectRight(r);
      }
    }
  }
}

// By every distance, forwards and backwards, also by whole tiles and around.
TEST(Exchange, ARingIsTurned) {
  for (int64_t shards : {1, 2, 3, 4}) {
    for (int64_t tile : {1, 2, 3, 5}) {
      for (int64_t offset = -2 * shards * tile; offset <= 2 * shards * tile; ++offset) {
        ShardRanges r = Of(shards * tile, shards, tile, offset, tile);
        r.wraps = true;
        const ExchangePlan plan = PlanExchange(r);
        EXPECT_TRUE(plan.in_a_row && !plan.gather);
        int64_t sent = 0;
        for (int64_t i = 0; i < shards; ++i) {
          const std::vector<int64_t> range = RangeOf(r, plan, i);
          for (int64_t q = 0; q < tile; ++q) {
            const int64_t element = (r.Start(i) + q + 4 * r.extent) % r.extent;
            ASSERT_EQ(range[q], element) << Text(r);
            sent += element / tile != i;
          }
        }
        EXPECT_EQ(plan.sent * static_cast<double>(shards), static_cast<double>(sent)) << Text(r);
        EXPECT_LE(plan.num_collectives, 2) << Text(r);
      }
    }
  }
}

// Rolls, windows and shifts send the rows that are missing, whatever the shards have.
TEST(Exchange, NeighboursSendOnlyWhatIsMissing) {
  const ExchangePlan shift = PlanExchange(Of(800, 8, 100, -1, 100));
  EXPECT_TRUE(shift.in_a_row);
  EXPECT_EQ(shift.sent, 7.0 / 8);
  EXPECT_EQ(shift.num_collectives, 1);
  const ExchangePlan window = PlanExchange(Of(800, 8, 100, -2, 103));
  EXPECT_EQ(window.sent, (2 + 1) * 7.0 / 8);
  EXPECT_EQ(window.num_collectives, 2);
  const ExchangePlan far = PlanExchange(Of(800, 8, 100, 250, 100));
  EXPECT_EQ(far.sent, (50 * 6 + 50 * 5) / 8.0);
  EXPECT_EQ(far.num_collectives, 2);
}

// Halos of unlike lengths: shards of 29 of 113 rows, as windows of 3 with a stride of 2 need them.
TEST(Exchange, HalosOfUnlikeLengthsMakeARowWithWhatAShardHas) {
  ShardRanges r = Of(113, 4, 15, 0, 33);
  r.scale = 2;
  r.divisor = 1;
  r.shift = -2;
  const ExchangePlan plan = PlanExchange(r);
  ASSERT_FALSE(plan.gather || plan.in_a_row);
  const auto row = PartsAsRow(r, plan.parts);
  ASSERT_TRUE(row.has_value());
  EXPECT_LE(row->size, 40);  // of 33 that each needs; 33 + 2 * 29 with each part put in its place
  ExpectRight(r);
}

// 1,003 rows on 8 shards of 126, reversed: five rows of another shard, or of its own, and 121 of a
// third one, which follow either.
TEST(Exchange, PartsBesideTheSamePartShareAPlace) {
  ShardRanges r = Of(1003, 8, -126, 877, 126);
  const ExchangePlan plan = PlanExchange(r);
  ASSERT_FALSE(plan.gather || plan.in_a_row);
  const auto row = PartsAsRow(r, plan.parts);
  ASSERT_TRUE(row.has_value());
  EXPECT_LT(row->places.size(), plan.parts.size());
  EXPECT_LE(row->size, 3 * 126);
  ExpectRight(r);
}

TEST(Exchange, PartsOfUnlikeSizesBetweenTheSamePartsMakeNoRow) {
  const ShardRanges r = Of(12, 2, 6, 0, 6);
  const auto part = [](int64_t size, std::vector<int64_t> targets, std::vector<int64_t> to) {
    RangePart p = {.size = size, .from = {0, 0}, .to = std::move(to)};
    for (const int64_t t : targets) p.pairs.push_back({1 - t, t});
    return p;
  };
  const RangePart a = part(1, {0, 1}, {0, 0}), b = part(2, {0}, {1, 0}), c = part(2, {1}, {0, 1});
  const RangePart d = part(2, {0, 1}, {3, 3});
  const auto row = PartsAsRow(r, {a, b, c, d});
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->places.size(), 3);  // b or c
  const RangePart longer = part(3, {1}, {0, 1}), moved = part(2, {0, 1}, {3, 4});
  EXPECT_FALSE(PartsAsRow(r, {a, b, longer, moved}).has_value());
}

TEST(Exchange, PartsThatDoNotFollowEachOtherMakeNoRow) {
  RangePart a = {.size = 2, .pairs = {{1, 0}, {0, 1}}, .from = {0, 0}, .to = {0, 2}};
  RangePart b = {.size = 2, .pairs = {{0, 0}, {1, 1}}, .own = true, .from = {0, 0}, .to = {2, 0}};
  const ShardRanges r = Of(8, 2, 2, 0, 4);
  EXPECT_FALSE(PartsAsRow(r, {a, b}).has_value());  // ab on shard 0, ba on shard 1
  a.to = {0, 0};
  b.to = {3, 3};
  EXPECT_FALSE(PartsAsRow(r, {a, b}).has_value());  // an element between them
  b.to = {2, 2};
  EXPECT_TRUE(PartsAsRow(r, {a, b}).has_value());
}

TEST(Exchange, AlignedRangesSendNothing) {
  for (const ShardRanges& r : {Of(64, 8, 8, 0, 8), Of(64, 8, 8, 1, 7), Of(60, 8, 8, 2, 5)}) {
    const ExchangePlan plan = PlanExchange(r);
    EXPECT_EQ(plan.sent, 0) << Text(r);
    EXPECT_EQ(plan.num_collectives, 0) << Text(r);
  }
}

// Of 600 elements, parts of 66, 66, 63, 37, 35, 29 and 3 are sent. By distance there are two
// messages of 66, for four and three pairs of shards.
TEST(Exchange, PartsOfAlikeSizesGoTogetherWhereThatIsWorthAMessage) {
  for (int64_t scale : {1, 2000}) {
    ShardRanges r = Of(600 * scale, 6, 66 * scale, -scale, 66 * scale);
    r.end = 395 * scale;
    if (scale == 1) ExpectRight(r);
    EXPECT_EQ(NeededElements(r), 299 * scale / 6.0);
    const ExchangePlan plan = PlanExchange(r);
    EXPECT_EQ(plan.num_collectives, scale == 1 ? 2 : 3);
    EXPECT_EQ(plan.sent, (scale == 1 ? 7 * 66 : 4 * 66 + 2 * 37 + 29) * scale / 6.0);
  }
}

TEST(Exchange, AReversalSendsEachTileOnce) {
  const ExchangePlan plan = PlanExchange(Of(64, 8, -8, 56, 8));
  EXPECT_EQ(plan.sent, 8);
  EXPECT_EQ(plan.num_collectives, 1);
}

// The first eighth, spread over all shards: one shard sends seven pieces, the others nothing.
TEST(Exchange, ASliceOfOneTileIsSentInPieces) {
  ShardRanges r = Of(512, 8, 8, 0, 8);
  r.end = 64;
  const ExchangePlan plan = PlanExchange(r);
  EXPECT_EQ(plan.sent, 7 * 8 / 8.0);
  EXPECT_EQ(plan.num_collectives, 7);
}

TEST(Exchange, AGatherIsTakenWhereItSendsNoMore) {
  const ExchangePlan plan = PlanExchange(Of(64, 8, 0, 0, 64));
  EXPECT_TRUE(plan.gather);
  EXPECT_EQ(plan.sent, 56);
  EXPECT_EQ(plan.num_collectives, 1);
}

// What all shards need of others is known without what each of them needs of each.
TEST(Exchange, OfManyShardsTakesFewMessagesOrAGather) {
  constexpr int64_t kShards = 1 << 16;
  // The half in the middle: from as many distances as shards, in two places.
  const ExchangePlan middle = PlanExchange(Of(64 * kShards, kShards, 32, 16 * kShards, 32));
  EXPECT_FALSE(middle.gather);
  EXPECT_LE(middle.num_collectives, 2);
  // Many tiles for each shard, and one tile in as many pieces as there are shards.
  EXPECT_TRUE(PlanExchange(Of(64 * kShards, kShards, 0, 0, 32 * kShards)).gather);
  ShardRanges first = Of(kShards * kShards, kShards, 1, 0, 1);
  first.end = kShards;
  EXPECT_TRUE(PlanExchange(first).gather);
}

TEST(Exchange, RangesThatLeaveTheDimensionAreTold) {
  EXPECT_FALSE(Of(64, 8, 8, 0, 8).LeavesBounds());
  EXPECT_TRUE(Of(64, 8, 8, -1, 8).LeavesBounds());
  EXPECT_TRUE(Of(64, 8, 8, 1, 8).LeavesBounds());
  EXPECT_TRUE(Of(60, 8, 8, 0, 8).LeavesBounds());
}

}  // namespace
}  // namespace shardcall
