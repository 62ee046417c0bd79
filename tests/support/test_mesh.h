// SPDX-License-Identifier: Apache-2.0
// Meshes and shardings for generated programs, written as HLO's V2 text. Example: with sizes {2,
// 4}, TestSharding{{1}, {}} shards dimension 0 over the axis of size 4 and is written as `,
// sharding={devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}`.
#ifndef SHARDCALL_TESTS_SUPPORT_TEST_MESH_H_
#define SHARDCALL_TESTS_SUPPORT_TEST_MESH_H_

#include <cstdint>
#include <string>
#include <vector>

namespace shardcall {

struct TestMesh {
  std::vector<int64_t> sizes;
  int64_t num_devices() const;
};

// For each dimension the indices of the mesh axes that shard it, major to minor.
using TestSharding = std::vector<std::vector<int>>;

// All assignments of axes to `rank` dimensions, in every order: 11 for two axes and two dimensions.
// The first one is the replicated sharding.
std::vector<TestSharding> AllShardings(const TestMesh& mesh, int rank);

// "{replicated}" or "{devices=...}".
std::string ShardingText(const TestMesh& mesh, const TestSharding& sharding);

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SUPPORT_TEST_MESH_H_
