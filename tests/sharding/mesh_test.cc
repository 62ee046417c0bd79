// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/mesh.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "shardcall/sharding/axis_names.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/whole_axes.h"
#include "tests/sharding/mesh_cases.h"

namespace shardcall {
namespace {

// The devices of an iota expression by its definition.
std::vector<int64_t> Expand(const std::vector<int64_t>& reshape, const std::vector<int64_t>& perm) {
  std::vector<int64_t> strides(reshape.size(), 1);
  for (int i = static_cast<int>(reshape.size()) - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * reshape[i + 1];
  }
  std::vector<int64_t> out = {0};
  for (int64_t d : perm) {
    std::vector<int64_t> next;
    for (int64_t base : out) {
      for (int64_t c = 0; c < reshape[d]; ++c) next.push_back(base + c * strides[d]);
    }
    out = next;
  }
  return out;
}

TEST(DeviceOrderTest, EveryIotaExpressionMapsAsDefinedAndIsRecognisedFromItsList) {
  const std::vector<std::vector<int64_t>> reshapes = {
      {}, {1}, {8}, {2, 4}, {4, 2}, {2, 2, 2}, {2, 1, 4}, {2, 3, 2}, {3, 2}, {1, 1}, {2, 2, 2, 2}};
  for (const auto& reshape : reshapes) {
    std::vector<int64_t> perm(reshape.size());
    std::iota(perm.begin(), perm.end(), 0);
    do {
      const std::vector<int64_t> devices = Expand(reshape, perm);
      auto order = DeviceOrder::Iota(reshape, perm);
      ASSERT_TRUE(order.ok()) << order.status();
      auto list = DeviceOrder::List(devices);
      ASSERT_TRUE(list.ok()) << list.status();
      EXPECT_TRUE(list->is_iota());
      EXPECT_TRUE(*list == *order);
      EXPECT_EQ(order->is_identity(), std::is_sorted(devices.begin(), devices.end()));
      for (size_t p = 0; p < devices.size(); ++p) {
        ASSERT_EQ(order->DeviceAt(p), devices[p]);
        ASSERT_EQ(order->PositionOf(devices[p]), p);
      }
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}

TEST(DeviceOrderTest, EveryPermutationOfSixKeepsItsDevicesAndEqualOrdersCompareEqual) {
  std::vector<int64_t> ids = {0, 1, 2, 3, 4, 5};
  int iotas = 0;
  do {
    auto order = DeviceOrder::List(ids);
    ASSERT_TRUE(order.ok());
    iotas += order->is_iota();
    for (int64_t p = 0; p < 6; ++p) {
      ASSERT_EQ(order->DeviceAt(p), ids[p]);
      ASSERT_EQ(order->PositionOf(ids[p]), p);
    }
    EXPECT_TRUE(*order == *DeviceOrder::List(ids));
  } while (std::next_permutation(ids.begin(), ids.end()));
  EXPECT_EQ(iotas, 3);  // identity, [2,3]T(1,0), [3,2]T(1,0)
}

TEST(DeviceOrderTest, CanonicalFormDropsOnesAndMergesNeighbours) {
  auto order = DeviceOrder::Iota({4, 1, 2}, {2, 1, 0});
  EXPECT_EQ(order->reshape(), absl::MakeConstSpan({int64_t{4}, int64_t{2}}));
  EXPECT_TRUE(DeviceOrder::Iota({2, 4}, {0, 1})->is_identity());
  EXPECT_TRUE(*DeviceOrder::Iota({2, 4}, {}) == DeviceOrder::Identity(8));
  EXPECT_TRUE(*DeviceOrder::Iota({2, 2, 2}, {2, 0, 1}) == *DeviceOrder::Iota({4, 2}, {1, 0}));
}

TEST(DeviceOrderTest, OrdersThatAreNoPermutationAreErrors) {
  for (const auto& s :
       {DeviceOrder::List({0, 2}).status(), DeviceOrder::List({0, 0}).status(),
        DeviceOrder::List({}).status(), DeviceOrder::Iota({2, 0}, {}).status(),
        DeviceOrder::Iota({2, 2}, {0, 0}).status(), DeviceOrder::Iota({2, 2}, {0}).status(),
        DeviceOrder::Iota({int64_t{1} << 40, int64_t{1} << 40}, {}).status()}) {
    EXPECT_EQ(DiagnosticCode(s), "E160") << s;
  }
}

TEST(MeshTest, BadMeshesAreErrors) {
  EXPECT_EQ(DiagnosticCode(Mesh::Create("m", {{"a", 0}}).status()), "E160");
  EXPECT_EQ(DiagnosticCode(Mesh::Create("m", {{"a", 2}, {"a", 2}}).status()), "E160");
  EXPECT_EQ(DiagnosticCode(Mesh::Create("m", {{"a", 1 << 30}, {"b", 4}}).status()), "E160");
  EXPECT_EQ(Mesh::Create("m", {{"a", 2}, {"b", 1}, {"c", 4}})->num_devices(), 8);
}

TEST(BaseMeshTest, CoordinatesFollowTheDefinition) {
  for (const auto& sizes : SmallMeshSizes()) {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    const BaseMesh mesh(sizes, DeviceOrder::Identity(n));
    for (const AxisList& axes : AllLists(mesh, 2)) {
      const std::vector<int64_t> truth = Coordinates(mesh, axes);
      for (int64_t p = 0; p < n; ++p) ASSERT_EQ(mesh.Coordinate(axes, p), truth[p]);
    }
  }
}

TEST(BaseMeshTest, FromStrideFindsExactlyTheRunsThatTheAxesCanSay) {
  for (const auto& sizes : SmallMeshSizes()) {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    const BaseMesh mesh(sizes, DeviceOrder::Identity(n));
    for (int64_t stride = 1; stride <= n; ++stride) {
      for (int64_t size = 2; stride * size <= n; ++size) {
        AxisList axes;
        if (!mesh.FromStride(stride, size, &axes)) continue;
        for (int64_t p = 0; p < n; ++p) {
          ASSERT_EQ(mesh.Coordinate(axes, p), p / stride % size);
        }
      }
    }
    for (const AxisRef& a : AllParts(mesh)) {
      AxisList axes;
      ASSERT_TRUE(mesh.FromStride(mesh.Stride(a), a.size, &axes));
      EXPECT_EQ(axes, AxisList{a});
    }
  }
}

TEST(AxisNamesTest, PartsPrintByTheNamesOfTheUser) {
  BaseMesh mesh({2, 2, 2}, DeviceOrder::Identity(8));
  EXPECT_EQ(mesh.AxisName({1, 1, 2}), "\"x1\"");
  mesh.SetNames("mesh", {{"data", {{0, 1, 2}, {1, 1, 2}}}, {"model", {{2, 1, 2}}}});
  EXPECT_EQ(mesh.AxisName({0, 1, 2}), "\"data\":(1)2");
  EXPECT_EQ(mesh.AxisName({1, 1, 2}), "\"data\":(2)2");
  EXPECT_EQ(AxisRefsText(NameAxes(mesh, {{0, 1, 2}, {1, 1, 2}, {2, 1, 2}})), "\"data\", \"model\"");
  EXPECT_EQ(AxisRefsText(NameAxes(mesh, {{1, 1, 2}, {0, 1, 2}})), "\"data\":(2)2, \"data\":(1)2");

  BaseMesh coarse({8}, DeviceOrder::Identity(8));
  coarse.SetNames("mesh", {{"a", {{0, 1, 2}}}, {"b", {{0, 2, 4}}}});
  EXPECT_EQ(coarse.AxisName({0, 1, 8}), "\"a\", \"b\"");
  EXPECT_EQ(coarse.AxisName({0, 1, 4}), "\"a\", \"b\":(1)2");
  coarse.SetNames("mesh", {{"a", {{0, 1, 2}}}});
  EXPECT_EQ(coarse.AxisName({0, 1, 8}), "\"a\", \"x0\":(2)4");
}

TEST(AxisNamesTest, WholeAxesThatDivideASizeAreKept) {
  BaseMesh mesh({8}, DeviceOrder::Identity(8));
  mesh.SetNames("mesh", {{"a", {{0, 1, 2}}}, {"b", {{0, 2, 4}}}});
  const auto kept = [&](AxisList axes, int64_t size) {
    return AxisRefsText(NameAxes(mesh, WholeAxesThatDivide(mesh, axes, size)));
  };
  EXPECT_EQ(kept({{0, 1, 8}}, 16), "\"a\", \"b\"");
  EXPECT_EQ(kept({{0, 1, 8}}, 4), "\"a\"");
  EXPECT_EQ(kept({{0, 1, 8}}, 3), "");
  EXPECT_EQ(kept({{0, 1, 4}}, 8), "\"a\"");  // half of b is not named
  EXPECT_EQ(kept({{0, 2, 2}}, 8), "");
  EXPECT_EQ(kept({{0, 2, 4}, {0, 1, 2}}, 8), "\"b\", \"a\"");
  EXPECT_EQ(kept({{0, 2, 4}, {0, 1, 2}}, 4), "\"b\"");
  EXPECT_EQ(kept({{0, 2, 4}, {0, 1, 2}}, 2), "");  // a would divide, but it is the minor one
  EXPECT_EQ(kept({{0, 1, 8}}, 0), "\"a\", \"b\"");
  EXPECT_EQ(kept({}, 4), "");
  mesh.SetNames("mesh", {{"a", {{0, 1, 2}}}});  // covers a part of the mesh: base axes count
  EXPECT_EQ(WholeAxesThatDivide(mesh, {{0, 1, 2}}, 8), AxisList{});
  EXPECT_EQ(WholeAxesThatDivide(mesh, {{0, 1, 8}}, 8), AxisList({{0, 1, 8}}));
}

}  // namespace
}  // namespace shardcall
