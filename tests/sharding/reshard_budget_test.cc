// SPDX-License-Identifier: Apache-2.0
// Reshards that have too many plans for a search: the greedy planner takes over at a number of
// states, and sends little more than the best plan where that is known.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "shardcall/sharding/reshard/reshard.h"
#include "shardcall/sharding/reshard/reshard_search.h"
#include "tests/sharding/random_reshard.h"

namespace shardcall {
namespace {

double Bytes(const std::vector<Move>& moves) {
  double bytes = 0;
  for (const Move& m : moves) bytes += m.bytes;
  return bytes;
}

void ExpectChain(const std::vector<Move>& moves, const Sharding* from, const Sharding* to) {
  const Sharding* at = from;
  for (const Move& m : moves) {
    ASSERT_EQ(m.before, at);
    ASSERT_GE(m.bytes, 0);
    at = m.after;
  }
  ASSERT_EQ(at, to);
}

// All meshes of up to 7 axes that random numbers give, divisible and indivisible dimensions, and
// axes over which a value is partial.
TEST(GreedyReshard, SendsLittleMoreThanTheBestOfTheSearch) {
  std::mt19937 random(34);
  int compared = 0, less = 0;
  for (int k = 0; k < 4000; ++k) {
    RandomReshard r(random, 7, 4);
    SCOPED_TRACE(r.Text());
    std::vector<Move> best, greedy;
    internal::GreedyReshard(r.context, r.shape, r.from, r.to, &greedy);
    ASSERT_NO_FATAL_FAILURE(ExpectChain(greedy, r.from, r.to));
    if (!internal::SearchReshard(r.context, r.shape, r.from, r.to, &best, 100'000)) continue;
    ++compared;
    ASSERT_LE(Bytes(greedy), 3 * Bytes(best));
    less += Bytes(greedy) < Bytes(best);
  }
  EXPECT_GT(compared, 3900);
  EXPECT_LT(less, 200);  // by permutes that the search has not
}

TEST(GreedyReshard, SendsNothingWhereNothingMustBeSent) {
  std::mt19937 random(35);
  for (int k = 0; k < 300; ++k) {
    RandomReshard r(random, 5, 3);
    const Sharding* whole =
        ReplicatedSharding(r.context, r.from->mesh(), r.from->rank(), r.from->manual());
    std::vector<Move> moves;
    internal::GreedyReshard(r.context, r.shape, whole, r.to, &moves);
    EXPECT_EQ(Bytes(moves), 0) << r.Text();
  }
}

TEST(ReshardBudget, ASearchEndsAtItsNumberOfStatesAndAppendsNothing) {
  std::mt19937 random(36);
  int ended = 0;
  for (int k = 0; k < 300; ++k) {
    RandomReshard r(random, 6, 3);
    std::vector<Move> all, some;
    ASSERT_TRUE(internal::SearchReshard(r.context, r.shape, r.from, r.to, &all));
    const bool enough = internal::SearchReshard(r.context, r.shape, r.from, r.to, &some, 20);
    ended += !enough;
    EXPECT_EQ(Bytes(some), enough ? Bytes(all) : 0);
    EXPECT_EQ(some.size(), enough ? all.size() : 0);
  }
  EXPECT_GT(ended, 30);
  EXPECT_LT(ended, 270);
}

// A reshard of rank 8 between random placements of all axes.
const ReshardPlan& PlanOverAll(Context& context, int axes, int64_t size, int rank) {
  std::mt19937 random(axes);
  const std::vector<int64_t> sizes(axes, size);
  int64_t devices = 1;
  for (int64_t s : sizes) devices *= s;
  BaseMesh* const mesh = InternBaseMesh(context, sizes, DeviceOrder::Identity(devices));
  const Sharding* ends[2];
  for (const Sharding*& end : ends) {
    ShardingBuilder b(mesh, rank);
    std::vector<int> order(axes);
    for (int k = 0; k < axes; ++k) order[k] = k;
    std::shuffle(order.begin(), order.end(), random);
    for (int k : order) b.dims[random() % rank].push_back(mesh->FullAxis(k));
    for (AxisList& dim : b.dims) dim = Canonical(*mesh, dim);
    end = b.Intern(context);
  }
  const Shape* shape = context.WithDefaultLayout(
      context.MakeArray(ElementType::kF32, std::vector<int64_t>(rank, int64_t{1} << 6)));
  return PlanReshard(context, shape, ends[0], ends[1]);
}

// Without a bound a search of 16 axes takes minutes and gigabytes, and of 20 axes it does not end.
// Here a chain that simple rules find is known to be the cheapest one soon.
TEST(ReshardBudget, ManyAxesArePlannedSoon) {
  for (int axes : {12, 16, 20}) {
    Context context;
    const ReshardPlan& plan = PlanOverAll(context, axes, 2, 8);
    EXPECT_FALSE(plan.greedy) << axes;
    ASSERT_FALSE(plan.moves.empty());
    ExpectChain(plan.moves, plan.moves.front().before, plan.moves.back().after);
    // One permute, and then all-to-alls of what remains.
    EXPECT_LE(plan.bytes, 8.0 * LocalBytes(context.WithDefaultLayout(context.MakeArray(
                                               ElementType::kF32, std::vector<int64_t>(8, 64))),
                                           *plan.moves.front().before));
  }
  Context context;
  EXPECT_FALSE(PlanOverAll(context, 4, 2, 8).greedy);
}

TEST(ReshardBudget, WhatTakesTooManyStatesIsPlannedGreedily) {
  Context context;
  context.Get<ReshardBudget>().states = 2;
  const ReshardPlan& plan = PlanOverAll(context, 6, 2, 8);
  EXPECT_TRUE(plan.greedy);
  ExpectChain(plan.moves, plan.moves.front().before, plan.moves.back().after);
}

// Parts of axes are axes of their own to a plan: here 14 of them.
TEST(ReshardBudget, PartsOfLargeAxesAreMoved) {
  std::mt19937 random(7);
  for (int k = 0; k < 10; ++k) {
    Context context;
    BaseMesh* const mesh =
        InternBaseMesh(context, std::vector<int64_t>(7, 4), DeviceOrder::Identity(1 << 14));
    const Sharding* ends[2];
    for (const Sharding*& end : ends) {
      std::vector<AxisRef> parts;
      for (uint16_t axis = 0; axis < 7; ++axis) {
        parts.push_back({axis, 1, 2});
        parts.push_back({axis, 2, 2});
      }
      std::shuffle(parts.begin(), parts.end(), random);
      ShardingBuilder b(mesh, 4);
      for (const AxisRef& part : parts) b.dims[random() % 4].push_back(part);
      for (AxisList& dim : b.dims) dim = Canonical(*mesh, dim);
      end = b.Intern(context);
    }
    const Shape* shape = context.WithDefaultLayout(
        context.MakeArray(ElementType::kF32, std::vector<int64_t>(4, 1 << 10)));
    const ReshardPlan& plan = PlanReshard(context, shape, ends[0], ends[1]);
    ExpectChain(plan.moves, ends[0], ends[1]);
  }
}

}  // namespace
}  // namespace shardcall
