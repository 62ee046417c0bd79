// SPDX-License-Identifier: Apache-2.0
// Who sends to whom in the permute of a reshard.
#ifndef SHARDCALL_SHARDING_RESHARD_PERMUTE_SOURCES_H_
#define SHARDCALL_SHARDING_RESHARD_PERMUTE_SOURCES_H_

#include <cstdint>
#include <vector>

#include "shardcall/sharding/sharding.h"

namespace shardcall {
inline namespace internal {

// For each position in the mesh of `after`, the device that has the shard which that position gets:
// the one with the same manual coordinates and the same index among the replicas. Both shardings
// have equal numbers of shards in every dimension and no partial axes; their meshes may differ.
std::vector<int64_t> PermuteSources(const Sharding& before, const Sharding& after);
// The share of the devices that get their shard from another one. Of more than 4,096 devices all
// are taken to.
double PermutedShare(const Sharding& before, const Sharding& after);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_RESHARD_PERMUTE_SOURCES_H_
