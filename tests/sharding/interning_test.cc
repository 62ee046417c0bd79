// SPDX-License-Identifier: Apache-2.0
#include <climits>
#include <cstdlib>
#include <new>
#include <vector>

#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/check_sharding.h"
#include "shardcall/sharding/sharding.h"

namespace {
long allocations = 0;
}  // namespace

void* operator new(size_t size) {
  ++allocations;
  void* p = std::malloc(size);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace shardcall {
namespace {

TEST(ShardingInternTest, EqualPlacementIsOnePointer) {
  Context c;
  BaseMesh* mesh = InternBaseMesh(c, {4, 2}, DeviceOrder::Identity(8));
  EXPECT_EQ(mesh, InternBaseMesh(c, {4, 2}, DeviceOrder::Identity(8)));
  EXPECT_NE(mesh, InternBaseMesh(c, {2, 4}, DeviceOrder::Identity(8)));
  EXPECT_NE(mesh, InternBaseMesh(c, {4, 2}, *DeviceOrder::Iota({4, 2}, {1, 0})));

  ShardingBuilder whole(mesh, 2), halves(mesh, 2), swapped(mesh, 2);
  whole.dims[0] = {{0, 1, 4}};
  halves.dims[0] = {{0, 1, 2}, {0, 2, 2}, {1, 1, 1}};
  swapped.dims[0] = {{0, 2, 2}, {0, 1, 2}};
  EXPECT_EQ(whole.Intern(c), halves.Intern(c));
  EXPECT_NE(whole.Intern(c), swapped.Intern(c));
  EXPECT_EQ(ShardingBuilder(*whole.Intern(c)).Intern(c), whole.Intern(c));

  // Partial and manual axes are sets: their order says nothing.
  ShardingBuilder p(mesh, 1), q(mesh, 1);
  p.partial = {{0, 1, 4}, {1, 1, 2}};
  q.partial = {{1, 1, 2}, {0, 2, 2}, {0, 1, 2}};
  EXPECT_EQ(p.Intern(c), q.Intern(c));
  q.partial_op = PartialOp::kMax;
  EXPECT_NE(p.Intern(c), q.Intern(c));
  // The op of no partial axes says nothing.
  p.partial.clear();
  q.partial.clear();
  EXPECT_EQ(p.Intern(c), q.Intern(c));
  EXPECT_EQ(p.Intern(c), ReplicatedSharding(c, mesh, 1));
  EXPECT_TRUE(p.Intern(c)->IsReplicated());
  EXPECT_NE(ReplicatedSharding(c, mesh, 1, {{0, 1, 4}}), ReplicatedSharding(c, mesh, 1));
}

TEST(ShardingInternTest, RanksThatNoArrayHasAreRefused) {
  Context c;
  BaseMesh* mesh = InternBaseMesh(c, {4, 2}, DeviceOrder::Identity(8));
  for (const int rank : {-1, INT_MIN, INT_MAX}) {
    ShardingBuilder b(mesh, rank);
    EXPECT_EQ(DiagnosticCode(CheckSharding(b)), "E162") << CheckSharding(b);
    EXPECT_EQ(b.Intern(c), nullptr);
    EXPECT_EQ(ReplicatedSharding(c, mesh, rank), nullptr);
  }
  EXPECT_EQ(ReplicatedSharding(c, mesh, 0)->rank(), 0);
  EXPECT_EQ(ReplicatedSharding(c, mesh, 300)->rank(), 300);
}

TEST(ShardingInternTest, WhatIsNoPartOfAnAxisIsRefusedInAnyCompany) {
  Context c;
  BaseMesh* mesh = InternBaseMesh(c, {4, 2}, DeviceOrder::Identity(8));
  constexpr uint32_t kMost = UINT32_MAX;
  // Sizes of nothing beside a part that is right, and sizes whose products wrap round.
  for (const AxisList& dim :
       {AxisList{{0, 0, 2}, {0, 1, 2}}, AxisList{{0, 1, 2}, {0, 2, 0}}, AxisList{{0, kMost, kMost}},
        AxisList{{0, 0, 3}, {0, 0, 0xAAAAAAAB}}, AxisList{{0, 1, 3}, {0, 3, 0xAAAAAAAB}},
        AxisList{{0, 1, 1u << 31}, {0, 1u << 31, 2}, {0, 0, 2}}, AxisList{{9, 1, 2}}}) {
    ShardingBuilder b(mesh, 1);
    b.dims[0] = dim;
    EXPECT_EQ(DiagnosticCode(CheckSharding(b)), "E162") << CheckSharding(b);
    EXPECT_EQ(b.Intern(c), nullptr);
  }
  ShardingBuilder device(mesh, 1), op(mesh, 1);
  device.maximal_device = -2;
  op.partial_op = static_cast<PartialOp>(7);
  for (const ShardingBuilder& b : {device, op}) {
    EXPECT_EQ(DiagnosticCode(CheckSharding(b)), "E162") << CheckSharding(b);
    EXPECT_EQ(b.Intern(c), nullptr);
  }
}

TEST(ShardingInternTest, AnAxisThatIsUsedTwiceIsRefused) {
  Context c;
  BaseMesh* mesh = InternBaseMesh(c, {4, 2}, DeviceOrder::Identity(8));
  const AxisRef axis{0, 1, 4}, half{0, 2, 2};
  ShardingBuilder two(mesh, 2), part(mesh, 2), partial(mesh, 1);
  two.dims[0] = two.dims[1] = {axis};
  part.dims[0] = {axis};
  part.dims[1] = {half};
  partial.dims[0] = {axis};
  partial.partial = {half};
  for (const ShardingBuilder& b : {two, part, partial}) {
    EXPECT_EQ(DiagnosticCode(CheckSharding(b)), "E162") << CheckSharding(b);
    EXPECT_EQ(b.Intern(c), nullptr);
  }
}

TEST(ShardingInternTest, UsedAxesAreTheSortedUnion) {
  Context c;
  BaseMesh* mesh = InternBaseMesh(c, {4, 2, 2}, DeviceOrder::Identity(16));
  ShardingBuilder b(mesh, 2);
  b.dims[0] = {{1, 1, 2}};
  b.dims[1] = {{0, 2, 2}};
  b.partial = {{0, 1, 2}};
  b.manual = {{2, 1, 2}};
  const Sharding* s = b.Intern(c);
  EXPECT_EQ(s->used(), absl::MakeConstSpan({AxisRef{0, 1, 4}, {1, 1, 2}, {2, 1, 2}}));
  EXPECT_EQ(s->num_shards(0), 2);
  EXPECT_FALSE(s->IsReplicated());
  EXPECT_EQ(s->ToString(), "[{\"x1\"}, {\"x0\":(2)2}] partial=add{\"x0\":(1)2} manual={\"x2\"}");
}

TEST(ShardingInternTest, MaximalShardingsHaveNoAxes) {
  Context c;
  BaseMesh* mesh = InternBaseMesh(c, {4}, DeviceOrder::Identity(4));
  ShardingBuilder b(mesh, 1);
  b.maximal_device = 3;
  const Sharding* s = b.Intern(c);
  EXPECT_TRUE(s->is_maximal());
  EXPECT_FALSE(s->IsReplicated());
  EXPECT_EQ(s->ToString(), "{maximal device=3}");
}

TEST(ShardingInternTest, AHitAllocatesNothing) {
  Context c;
  BaseMesh* mesh = InternBaseMesh(c, {4, 2, 2}, DeviceOrder::Identity(16));
  const Shape* shape = c.MakeArray(ElementType::kF32, {16, 32, 8}, {2, 1, 0});
  ShardingBuilder b(mesh, 3);
  b.dims[0] = {{0, 1, 2}};
  b.dims[2] = {{1, 1, 2}, {2, 1, 2}};
  b.partial = {{0, 2, 2}};
  const Sharding* s = b.Intern(c);
  const LocalState* state = CanonicalState(c, s, shape);
  const Shape* local = LocalShape(c, shape, s);
  const long before = allocations;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(b.Intern(c), s);
    ASSERT_EQ(CanonicalState(c, s, shape), state);
    ASSERT_EQ(LocalShape(c, shape, s), local);
    ASSERT_EQ(c.MakeArray(ElementType::kF32, {16, 32, 8}, {2, 1, 0}), shape);
  }
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace shardcall
