// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "shardcall/sharding/mesh.h"
#include "tests/sharding/mesh_cases.h"

namespace shardcall {
namespace {

TEST(DeviceGroupsTest, IotaAndListsNameTheSameGroupsUnderEveryOrder) {
  int iotas = 0, lists = 0;
  for (const auto& sizes : SmallMeshSizes()) {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    std::vector<DeviceOrder> orders = {DeviceOrder::Identity(n)};
    for (int64_t d = 2; d < n; ++d) {
      if (n % d == 0) orders.push_back(*DeviceOrder::Iota({n / d, d}, {1, 0}));
    }
    std::vector<int64_t> odd(n);
    for (int64_t p = 0; p < n; ++p) odd[p] = p ^ (p < n - n % 2 ? 1 : 0);
    orders.push_back(*DeviceOrder::List(odd));
    for (const DeviceOrder& order : orders) {
      const BaseMesh mesh(sizes, order);
      for (const AxisList& axes : AllLists(mesh, 2)) {
        const auto groups = GroupsAsLists(mesh, axes);
        // By definition: members differ only along `axes`, in their order.
        const AxisList rest = Complement(mesh, axes);
        const auto member = Coordinates(mesh, axes), group = Coordinates(mesh, rest);
        ASSERT_EQ(groups.size(), n / AxesSize(axes));
        for (int64_t p = 0; p < n; ++p) {
          ASSERT_EQ(groups[group[p]][member[p]], order.DeviceAt(p));
        }
        IotaGroups iota;
        if (!GroupsAsIota(mesh, axes, &iota)) {
          ++lists;
          EXPECT_FALSE(order.is_identity());
          continue;
        }
        ++iotas;
        ASSERT_EQ(iota.num_groups, groups.size());
        ASSERT_EQ(iota.group_size, AxesSize(axes));
        auto flat = DeviceOrder::Iota(iota.reshape, iota.perm);
        ASSERT_TRUE(flat.ok());
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(flat->DeviceAt(i), groups[i / iota.group_size][i % iota.group_size]);
        }
      }
    }
  }
  EXPECT_GT(iotas, 100);
  EXPECT_GT(lists, 100);
}

TEST(DeviceGroupsTest, IotaFormsAreCanonical) {
  const BaseMesh mesh({4, 2}, DeviceOrder::Identity(8));
  IotaGroups g;
  ASSERT_TRUE(GroupsAsIota(mesh, {{1, 1, 2}}, &g));
  EXPECT_EQ(g.reshape, std::vector<int64_t>({8}));
  EXPECT_TRUE(g.perm.empty());
  ASSERT_TRUE(GroupsAsIota(mesh, {{0, 1, 4}}, &g));
  EXPECT_EQ(g.num_groups, 2);
  EXPECT_EQ(g.reshape, std::vector<int64_t>({4, 2}));
  EXPECT_EQ(g.perm, std::vector<int64_t>({1, 0}));
  ASSERT_TRUE(GroupsAsIota(mesh, {{0, 2, 2}}, &g));
  EXPECT_EQ(g.reshape, std::vector<int64_t>({2, 2, 2}));
  EXPECT_EQ(g.perm, std::vector<int64_t>({0, 2, 1}));
}

TEST(DeviceGroupsTest, IotaFormsDoNotGrowWithDevices) {
  const BaseMesh mesh({1 << 15, 1 << 10}, *DeviceOrder::Iota({1 << 10, 1 << 15}, {1, 0}));
  IotaGroups g;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(GroupsAsIota(mesh, {{0, 1, 1 << 15}}, &g));
  EXPECT_TRUE(g.perm.empty());  // the two transpositions cancel
}

}  // namespace
}  // namespace shardcall
