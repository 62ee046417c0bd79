// SPDX-License-Identifier: Apache-2.0
// Which device's random numbers each device gets, for callers that must reproduce them.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_DRAWS_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_DRAWS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/import/program.h"

namespace shardcall {
inline namespace internal {

// For each instruction that draws random numbers, by name: for each device, the device whose
// numbers it has. Over a mesh a=2, b=2, an `rng` of the program gives {0, 0, 0, 0}; one in a region
// that is manual over a gives {0, 0, 2, 2}; one with sharding={maximal device=3} gives {3, 3, 3,
// 3}. A name shared by instructions with different lists is left out.
absl::flat_hash_map<std::string, std::vector<int>> DrawingDevices(const Program& program);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_DRAWS_H_
