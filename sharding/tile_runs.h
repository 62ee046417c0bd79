// SPDX-License-Identifier: Apache-2.0
// Positions of tiles in a device order: per tile dimension, runs of positions with a constant
// stride. Internal to sharding/.
#ifndef SHARDCALL_SHARDING_TILE_RUNS_H_
#define SHARDCALL_SHARDING_TILE_RUNS_H_

#include <vector>

#include "absl/types/span.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall {
inline namespace internal {

struct Run {
  int64_t size, stride;
};

// Cuts the iota expression [reshape]T(perm) into `tile`: for each tile dim its runs in device ids,
// major to minor. [4,2]<=[2,4]T(1,0) gives {{4,1}}, {{2,4}}. False where the tiles do not divide
// the reshape dims.
bool CutAtTiles(absl::Span<const int64_t> reshape, absl::Span<const int64_t> perm,
                absl::Span<const int64_t> tile, std::vector<std::vector<Run>>* out);

// The iota expression that walks the runs, major to minor. They must cover all
// devices once.
DeviceOrder OrderOfRuns(absl::Span<const Run> runs);

// Tiles over a device order. `order` is the identity where the tiling is an iota expression that
// the tiles divide, else it is the device order of the tiling itself.
struct TileRuns {
  DeviceOrder order = DeviceOrder::Identity(1);
  std::vector<std::vector<Run>> dims;  // strides are positions of `order`
};
TileRuns RunsOfTiles(const DeviceOrder& order, absl::Span<const int64_t> tile);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_TILE_RUNS_H_
