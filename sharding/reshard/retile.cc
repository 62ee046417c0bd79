// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/reshard/retile.h"

#include <cmath>
#include <tuple>

#include "absl/container/flat_hash_map.h"

namespace shardcall {
inline namespace internal {
namespace {

struct RetileCosts {
  // By size, shards, tiles, and the bits of a row that has no whole bytes: what is sent of rows of
  // a byte, or of those.
  absl::flat_hash_map<std::tuple<int64_t, int64_t, int64_t, int64_t, double>, RetileCost> known;
};

}  // namespace

ShardRanges RetileRanges(int64_t size, int64_t shards, int64_t have, int64_t want) {
  return {.extent = size,
          .tile = have,
          .num_shards = shards,
          .step = want,
          .length = want,
          .end = size};
}

RetileCost CostOfRetile(Context& context, int64_t size, int64_t shards, int64_t have, int64_t want,
                        double row_bits) {
  const bool whole = std::fmod(row_bits, 8) == 0;
  auto [it, fresh] = context.Get<RetileCosts>().known.try_emplace(
      std::tuple(size, shards, have, want, whole ? 0 : row_bits));
  if (fresh) {
    const ShardRanges ranges = RetileRanges(size, shards, have, want);
    const ExchangePlan plan = PlanExchange(ranges);
    it->second = {SentBytes(plan, ranges, whole ? 8 : row_bits), plan.num_collectives};
  }
  return {it->second.sent * (whole ? row_bits / 8 : 1), it->second.collectives};
}

}  // namespace internal
}  // namespace shardcall
