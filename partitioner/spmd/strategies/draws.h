// SPDX-License-Identifier: Apache-2.0
// Which device draws the random numbers of an op, for who would draw the same.
#ifndef SHARDCALL_PARTITIONER_SPMD_STRATEGIES_DRAWS_H_
#define SHARDCALL_PARTITIONER_SPMD_STRATEGIES_DRAWS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/import/program.h"

namespace shardcall::inline internal {

// By the name of an instruction that draws numbers of each device's own, and by device:
// whose numbers the device has. Over a mesh a=2, b=2, an `rng` of the program is
// {0, 0, 0, 0}; one in a region that is manual over a is {0, 0, 2, 2}; one of
// sharding={maximal device=3} is {3, 3, 3, 3}. Of names that stand for unlike draws none
// is there.
absl::flat_hash_map<std::string, std::vector<int>> DrawingDevices(const Program& program);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_SPMD_STRATEGIES_DRAWS_H_
