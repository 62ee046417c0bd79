// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "gtest/gtest.h"
#include "shardcall/sharding/sharding.h"

namespace shardcall {
namespace {

TEST(LocalStateTest, UnevenShardsCoverTheDimensionOnce) {
  Context c;
  BaseMesh* mesh = InternBaseMesh(c, {2, 4}, DeviceOrder::Identity(8));
  const std::vector<AxisList> axes = {
      {{0, 1, 2}}, {{1, 1, 4}}, {{0, 1, 2}, {1, 1, 4}}, {{1, 1, 4}, {0, 1, 2}}, {{1, 2, 2}}};
  for (int64_t size = 0; size <= 17; ++size) {
    const Shape* shape = c.MakeArray(ElementType::kF32, {size}, {0});
    for (const AxisList& a : axes) {
      ShardingBuilder b(mesh, 1);
      b.dims[0] = a;
      const Sharding* s = b.Intern(c);
      const int64_t n = AxesSize(a);
      const LocalState* state = CanonicalState(c, s, shape);
      ASSERT_EQ(state->dims[0].tile, (size + n - 1) / n);
      ASSERT_EQ(state->dims[0].pad, size % n == 0 ? PadKind::kNone : PadKind::kUnknown);
      ASSERT_EQ(LocalShape(c, shape, s), LocalShape(c, shape, *state));
      ASSERT_EQ(LocalShape(c, shape, s)->dim(0), state->dims[0].tile);
      std::vector<int> owners(size, 0);
      for (int64_t p = 0; p < 8; ++p) {
        const int64_t begin = mesh->Coordinate(a, p) * state->dims[0].tile;
        const int64_t valid = ValidExtent(*state, shape, 0, p);
        ASSERT_GE(valid, 0);
        ASSERT_LE(valid, state->dims[0].tile);
        for (int64_t i = 0; i < valid; ++i) ++owners[begin + i];
      }
      for (int count : owners) ASSERT_EQ(count, 8 / n);
    }
  }
}

TEST(LocalStateTest, EveryShardCountUpToEightIsCeilTiled) {
  Context c;
  for (int64_t n = 2; n <= 8; ++n) {
    BaseMesh* mesh = InternBaseMesh(c, {n}, DeviceOrder::Identity(n));
    for (int64_t size = 1; size <= 17; ++size) {
      ShardingBuilder b(mesh, 2);
      b.dims[1] = {mesh->FullAxis(0)};
      const Shape* shape = c.MakeArray(ElementType::kS32, {3, size});
      const LocalState* state = CanonicalState(c, b.Intern(c), shape);
      int64_t total = 0;
      for (int64_t p = 0; p < n; ++p) {
        total += ValidExtent(*state, shape, 1, p);
        EXPECT_EQ(ValidExtent(*state, shape, 0, p), 3);
      }
      EXPECT_EQ(total, size);
    }
  }
}

TEST(LocalStateTest, CeilTilesOfNestedAxesDoNotNest) {
  // D=10: {a,b} has tiles of 2, so a=0 owns [0,8); {a} alone has tiles of 5.
  Context c;
  BaseMesh* mesh = InternBaseMesh(c, {2, 4}, DeviceOrder::Identity(8));
  const Shape* shape = c.MakeArray(ElementType::kF32, {10});
  ShardingBuilder a(mesh, 1), ab(mesh, 1);
  a.dims[0] = {{0, 1, 2}};
  ab.dims[0] = {{0, 1, 2}, {1, 1, 4}};
  EXPECT_EQ(CanonicalState(c, a.Intern(c), shape)->dims[0].tile, 5);
  const LocalState* fine = CanonicalState(c, ab.Intern(c), shape);
  EXPECT_EQ(fine->dims[0].tile, 2);
  EXPECT_EQ(ValidExtent(*fine, shape, 0, 4), 2);  // a=1, b=0 holds [8,10)
  EXPECT_EQ(ValidExtent(*fine, shape, 0, 5), 0);
}

TEST(LocalStateTest, StatesTellTilesAndPaddingApart) {
  Context c;
  BaseMesh* mesh = InternBaseMesh(c, {4}, DeviceOrder::Identity(4));
  ShardingBuilder b(mesh, 1);
  b.dims[0] = {{0, 1, 4}};
  const Sharding* s = b.Intern(c);
  auto state = [&](DimState d) { return InternLocalState(c, s, {d}); };
  EXPECT_EQ(state({3, PadKind::kUnknown, 0}), state({3, PadKind::kUnknown, 17}));
  EXPECT_NE(state({3, PadKind::kUnknown, 0}), state({3, PadKind::kFinite, 0}));
  EXPECT_NE(state({3, PadKind::kConstant, 0}), state({3, PadKind::kConstant, 1}));
  EXPECT_NE(state({3, PadKind::kUnknown, 0}), state({4, PadKind::kUnknown, 0}));
}

TEST(LocalStateTest, OnlyTheDeviceOfAMaximalShardingHoldsElements) {
  Context c;
  BaseMesh* mesh = InternBaseMesh(c, {2, 2}, *DeviceOrder::Iota({2, 2}, {1, 0}));
  const Shape* shape = c.MakeArray(ElementType::kF32, {5});
  ShardingBuilder b(mesh, 1);
  b.maximal_device = 1;
  const LocalState* state = CanonicalState(c, b.Intern(c), shape);
  EXPECT_EQ(ValidExtent(*state, shape, 0, 2), 5);
  EXPECT_EQ(ValidExtent(*state, shape, 0, 1), 0);
}

}  // namespace
}  // namespace shardcall
