// SPDX-License-Identifier: Apache-2.0
// Tilings of a mesh whose devices are in an order of its own, as JAX makes for the links of a
// machine. Each tiling of such a mesh has a list of devices, and the lists of two of them differ:
// along other axes first, the devices are in another order, and those that hold copies of a tile
// are written in ascending order, whatever their places in the mesh are.
//
// Example: the mesh 0 1 / 3 2 has {devices=[2,2]0,1,3,2} along both axes, {devices=[2,2]0,3,1,2}
// along the second and the first, and {devices=[2,1,2]0,1,2,3 last_tile_dim_replicate} along the
// first.
#ifndef SHARDCALL_SHARDING_CONVERT_DEVICE_LISTS_H_
#define SHARDCALL_SHARDING_CONVERT_DEVICE_LISTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "shardcall/sharding/tile_runs.h"

namespace shardcall {
inline namespace internal {

struct DeviceTiling {
  TileRuns runs;
  int64_t copies = 1;  // of each tile, by the minor devices of it in any order
};

// The tiling by positions of `order`; empty if it is no iota expression over these.
std::optional<TileRuns> RunsOver(const DeviceOrder& order, const DeviceTiling& tiling);

// An order of devices of which each `loose` that follow each other may be in any order.
struct LooseOrder {
  DeviceOrder order;
  int64_t loose = 1;
};
// That of the devices of a tiling.
LooseOrder OrderOf(const DeviceTiling& tiling);
// The devices that may be in any order by the tile that each has of `tiling`; empty if they have
// tiles of different numbers, or all the same.
std::optional<LooseOrder> RefinedBy(const DeviceTiling& tiling, const LooseOrder& order);

// Brings tilings with lists into an order that does not depend on which stands first: those that
// say most come first, also before the others where each of these may be one of a list's mesh.
void SortLists(std::vector<DeviceTiling>* tilings);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_CONVERT_DEVICE_LISTS_H_
