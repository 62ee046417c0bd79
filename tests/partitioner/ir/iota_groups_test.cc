// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/iota_groups.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace shardcall {
namespace {

using Lists = std::vector<std::vector<int64_t>>;

Lists ListedByMesh(const char* text) {
  ReplicaGroups groups;
  groups.form = ReplicaGroups::Form::kMesh;
  groups.mesh_text = text;
  const auto lists = ListedGroups(groups, 0);
  EXPECT_TRUE(lists.has_value()) << text;
  return lists.value_or(Lists());
}

// By the definition: device d is at the coordinates of d in the mesh, row-major, and the members of
// a group differ along the axes, the first of which is the slowest.
TEST(IotaGroups, AxesOfAMeshGroupTheDevicesThatDifferAlongThem) {
  EXPECT_EQ(ListedByMesh("mesh['a'=4,'b'=2] {'b'}"), (Lists{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(ListedByMesh("mesh['a'=4,'b'=2] {'a'}"), (Lists{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(ListedByMesh("mesh['a'=4,'b'=2] {'a','b'}"), (Lists{{0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_EQ(ListedByMesh("mesh['a'=4,'b'=2] {'b','a'}"), (Lists{{0, 2, 4, 6, 1, 3, 5, 7}}));
  // Parts of an axis: of a, the major half and the minor half.
  EXPECT_EQ(ListedByMesh("mesh['a'=4,'b'=2] {'a':(1)2}"), (Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(ListedByMesh("mesh['a'=4,'b'=2] {'a':(2)2}"), (Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
}

TEST(IotaGroups, TheMeshMayHaveItsOwnOrderOfDevices) {
  EXPECT_EQ(ListedByMesh("mesh['a'=2,'b'=2], device_ids=(3,0,1,2) {'b'}"), (Lists{{3, 0}, {1, 2}}));
  EXPECT_EQ(ListedByMesh("mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}"),
            (Lists{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
}

TEST(IotaGroups, AxesOfAMeshBecomeTheSimplestIota) {
  Arena arena;
  ReplicaGroups groups;
  groups.form = ReplicaGroups::Form::kMesh;
  groups.mesh_text = "mesh['a'=4,'b'=2] {'a'}";
  const auto plain = WithoutMeshAxes(groups, arena);
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->form, ReplicaGroups::Form::kIota);
  EXPECT_EQ(plain->num_groups, 2);
  EXPECT_EQ(plain->group_size, 4);
  EXPECT_EQ(Ints(plain->reshape), Ints({4, 2}));
  EXPECT_EQ(Ints(plain->perm), Ints({1, 0}));
}

TEST(IotaGroups, AMeshThatDoesNotParseHasNoGroups) {
  for (const char* text : {"", "mesh['a'=4]", "mesh['a'=4] {'c'}", "mesh['a'=4 {'a'}"}) {
    ReplicaGroups groups;
    groups.form = ReplicaGroups::Form::kMesh;
    groups.mesh_text = text;
    EXPECT_FALSE(ListedGroups(groups, 4).has_value()) << text;
  }
}

}  // namespace
}  // namespace shardcall
