// SPDX-License-Identifier: Apache-2.0
// Tilings that name only some devices of a program: {devices=[2]1,3} among four. XLA propagates
// them, and refuses to partition a program that has one. Here the devices that are named hold the
// tiles that they are given, and each other device holds a copy of one of them, so that the tiling
// is one over all devices: {devices=[2,2]<=[4] last_tile_dim_replicate}.
#ifndef SHARDCALL_SHARDING_CONVERT_SUBSET_TILING_H_
#define SHARDCALL_SHARDING_CONVERT_SUBSET_TILING_H_

#include "absl/status/statusor.h"
#include "shardcall/sharding/hlo_sharding.h"

namespace shardcall {
inline namespace internal {

// Whether a sharding is a tiling over fewer than `num_devices` devices.
bool NamesSomeDevices(const HloSharding& sharding, int64_t num_devices);

// The devices of the smallest program that has those of a tiling: 6 for {devices=[4]0,1,4,5}.
int64_t DevicesNamed(const HloSharding& tiling);

// E160: a tiling that has another number of devices than of tiles, gives a device two tiles, or
// names one that no program has.
absl::Status CheckDevices(const HloSharding& tiling);

// A tiling that NamesSomeDevices as one over all. Devices that are not named join the tile of the
// named device whose id has the same digits, where the ids are a grid, so that equal neighbourhoods
// of devices share meshes: with {devices=[4]0,1,4,5} of eight, 2 and 6 hold what 0 and 4 hold.
// E160 as CheckDevices. E163 for devices that the program does not have, where the tiles do not
// divide the devices, where the devices run a manual region, and for a list of devices in a program
// of more than a million, since it is extended by such a list.
absl::StatusOr<HloSharding> OverAllDevices(const HloSharding& tiling, int64_t num_devices);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_CONVERT_SUBSET_TILING_H_
