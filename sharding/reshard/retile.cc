// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/reshard/retile.h"

#include <tuple>

#include "absl/container/flat_hash_map.h"

namespace shardcall {
inline namespace internal {
namespace {

struct RetileCosts {
  absl::flat_hash_map<std::tuple<int64_t, int64_t, int64_t, int64_t>, RetileCost> known;
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

RetileCost CostOfRetile(Context& context, int64_t size, int64_t shards, int64_t have,
                        int64_t want) {
  auto [it, fresh] =
      context.Get<RetileCosts>().known.try_emplace(std::tuple(size, shards, have, want));
  if (fresh) {
    const ExchangePlan plan = PlanExchange(RetileRanges(size, shards, have, want));
    it->second = {plan.sent, plan.num_collectives};
  }
  return it->second;
}

}  // namespace internal
}  // namespace shardcall
