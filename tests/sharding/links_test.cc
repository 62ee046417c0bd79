// SPDX-License-Identifier: Apache-2.0
// What of a reshard goes over slow links, and plans that send less there.
#include "shardcall/sharding/reshard/links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "shardcall/sharding/base/status.h"
#include "tests/sharding/mesh_cases.h"
#include "tests/sharding/random_reshard.h"

namespace shardcall {
namespace {

using internal::Crossing;
using internal::Links;
using internal::Pattern;
using internal::SetLinks;
using internal::ShareOfOthers;

CostModel Machine(double host_devices, double slower) {
  CostModel cost;
  cost.host_devices = host_devices;
  cost.network = cost.bandwidth / slower;
  return cost;
}

// A ring of all devices of the group, those of one host next to each other, and the network of a
// host shared by its devices: of each part, every host gets one copy.
TEST(Links, OfARingEachHostGetsEveryPartOnce) {
  EXPECT_EQ(ShareOfOthers(8, 8, Pattern::kRing), 0);
  EXPECT_EQ(ShareOfOthers(8, 4, Pattern::kRing), 1.0 / 7);  // 1 other host of 2, of 7 parts
  EXPECT_EQ(ShareOfOthers(8, 1, Pattern::kRing), 1);
  EXPECT_EQ(ShareOfOthers(8, 4, Pattern::kPairwise), 4.0 / 7);
  EXPECT_EQ(ShareOfOthers(8, 4, Pattern::kShift), 1);
  EXPECT_EQ(ShareOfOthers(4, 4, Pattern::kShift), 0);
}

// Against the devices of each group, counted: all groups are alike where hosts divide the mesh.
TEST(Links, GroupsAreThoseOfTheMesh) {
  for (const std::vector<int64_t>& sizes : SmallMeshSizes()) {
    int64_t n = 1;
    for (int64_t size : sizes) n *= size;
    if (n % 2 != 0) continue;
    for (const DeviceOrder& order :
         {DeviceOrder::Identity(n), *DeviceOrder::Iota({2, n / 2}, {1, 0})}) {
      Context context;
      const BaseMesh& mesh = *InternBaseMesh(context, sizes, order);
      for (const int64_t devices : {n / 2, n}) {
        ASSERT_TRUE(SetLinks(context, Machine(static_cast<double>(devices), 4)).ok());
        for (const AxisList& axes : AllLists(mesh, 2)) {
          const std::vector<int64_t> at = Coordinates(mesh, axes);
          AxisList others = Complement(mesh, axes);
          const std::vector<int64_t> group = Coordinates(mesh, others);
          int64_t here = 0;
          for (int64_t p = 0; p < n; ++p) {
            here +=
                group[p] == group[0] && order.DeviceAt(p) / devices == order.DeviceAt(0) / devices;
          }
          const Crossing over = context.Get<Links>().Of(mesh, axes, Collective::kAllToAll);
          const double share = ShareOfOthers(AxesSize(axes), here, Pattern::kPairwise);
          EXPECT_EQ(over.between_hosts, share);
          EXPECT_DOUBLE_EQ(over.weight, 1 + share * 3);
        }
      }
    }
  }
}

// f32[1024,1024] over 4 hosts of 2 devices: gathered over the hosts first, while shards are small.
TEST(Links, WhatGoesBetweenThemGoesWhileItIsSmall) {
  Context context;
  BaseMesh* const mesh = InternBaseMesh(context, {4, 2}, DeviceOrder::Identity(8));
  const Shape* const shape =
      context.WithDefaultLayout(context.MakeArray(ElementType::kF32, {1024, 1024}));
  ShardingBuilder b(mesh, 2);
  b.dims[0] = {mesh->FullAxis(0)};
  b.dims[1] = {mesh->FullAxis(1)};
  const Sharding* const from = b.Intern(context);
  const Sharding* const whole = ReplicatedSharding(context, mesh, 2);
  const double shard = 512 * 1024;

  const ReshardPlan& on_one = PlanReshard(context, shape, from, whole);
  EXPECT_EQ(on_one.moves[0].dim, 1);
  EXPECT_EQ(on_one.bytes, 7 * shard);
  EXPECT_EQ(on_one.between_hosts, 0);
  EXPECT_EQ(on_one.weighted, on_one.bytes);

  ASSERT_TRUE(SetLinks(context, Machine(2, 10)).ok());
  const ReshardPlan& on_four = PlanReshard(context, shape, from, whole);
  EXPECT_EQ(on_four.moves[0].dim, 0);
  EXPECT_EQ(on_four.bytes, 7 * shard);
  EXPECT_EQ(on_four.between_hosts, 3 * shard);
  EXPECT_EQ(on_four.weighted, 7 * shard + 3 * shard * 9);
  EXPECT_EQ(on_one.moves[0].dim, 1);  // is still there

  ASSERT_TRUE(SetLinks(context, CostModel()).ok());
  EXPECT_EQ(PlanReshard(context, shape, from, whole).between_hosts, 0);
}

TEST(Links, AxesHaveLinksOfTheirOwn) {
  Context context;
  // Of (a, b, c) = (2, 2, 2): device 1 is the next one along c, 2 along b, 4 along a.
  BaseMesh mesh({2, 2, 2}, DeviceOrder::Identity(8));
  mesh.SetNames("mesh",
                {{"a", {mesh.FullAxis(0)}}, {"b", {mesh.FullAxis(1)}}, {"c", {mesh.FullAxis(2)}}});
  const CostModel cost = *ParseCostModel(
      "bandwidth=100, latency=1, bandwidth.a=10, latency.a=7, bandwidth.b=50, bandwidth.c=400");
  ASSERT_TRUE(SetLinks(context, cost, &mesh).ok());
  Links& links = context.Get<Links>();
  const auto of = [&](std::vector<int> axes, Collective c) {
    AxisList list;
    for (int a : axes) list.push_back(mesh.FullAxis(a));
    return links.Of(mesh, list, c);
  };
  const auto seconds = [&](const Crossing& over, double bytes) {
    return cost.Seconds(links.Over(over, bytes));
  };
  // Along one axis all of it goes over its links.
  EXPECT_DOUBLE_EQ(seconds(of({0}, Collective::kAllGather), 1000), 1000 / 10. + 7);
  EXPECT_DOUBLE_EQ(seconds(of({1}, Collective::kAllGather), 1000), 1000 / 50. + 1);
  EXPECT_DOUBLE_EQ(seconds(of({2}, Collective::kAllGather), 1000), 1000 / 400. + 1);
  EXPECT_EQ(of({2}, Collective::kAllGather).between_hosts, 0);
  EXPECT_EQ(of({1}, Collective::kAllGather).between_hosts, 1);
  // A ring over b and c: of the three parts that a device gets, a third comes once over b.
  EXPECT_DOUBLE_EQ(seconds(of({1, 2}, Collective::kAllGather), 3000), 2000 / 400. + 1000 / 50. + 1);
  // Over all: of seven parts one over a, two over b, which two devices share, and four over c.
  EXPECT_DOUBLE_EQ(seconds(of({0, 1, 2}, Collective::kAllGather), 7000),
                   1000 / 10. + 2000 / 50. + 4000 / 400. + 7);
  // Each to each other one: four of seven over a, two over b, one over c.
  EXPECT_DOUBLE_EQ(seconds(of({0, 1, 2}, Collective::kAllToAll), 7000),
                   4000 / 10. + 2000 / 50. + 1000 / 400. + 7);
  // A permute takes what its slowest pair takes.
  EXPECT_DOUBLE_EQ(seconds(links.OfPairs({0, 1}, {1, 0}), 1000), 1000 / 400. + 1);
  EXPECT_DOUBLE_EQ(seconds(links.OfPairs({0, 1}, {1, 3}), 1000), 1000 / 50. + 1);
  EXPECT_DOUBLE_EQ(seconds(links.OfPairs({0, 1}, {1, 5}), 1000), 1000 / 10. + 7);
  // Groups of devices are as those of the mesh.
  EXPECT_DOUBLE_EQ(links.OfGroup({0, 1, 2, 3}, Collective::kAllGather).weight,
                   of({1, 2}, Collective::kAllGather).weight);
  EXPECT_DOUBLE_EQ(links.OfGroup({1, 5}, Collective::kAllToAll).weight,
                   of({0}, Collective::kAllGather).weight);
}

TEST(Links, AnAxisOfTheSameBandwidthMayTakeLongerToBegin) {
  Context context;
  BaseMesh mesh({2, 2}, DeviceOrder::Identity(4));
  mesh.SetNames("mesh", {{"data", {mesh.FullAxis(0)}}, {"model", {mesh.FullAxis(1)}}});
  const CostModel cost = *ParseCostModel("bandwidth=100, latency=1, latency.data=5");
  ASSERT_TRUE(SetLinks(context, cost, &mesh).ok());
  Links& links = context.Get<Links>();
  EXPECT_EQ(links.Of(mesh, {mesh.FullAxis(0)}, Collective::kAllGather).latency, 4);
  EXPECT_EQ(links.Of(mesh, {mesh.FullAxis(0)}, Collective::kAllGather).weight, 1);
  EXPECT_EQ(links.Of(mesh, {mesh.FullAxis(1)}, Collective::kAllGather).latency, 0);
  const CostModel hosts =
      *ParseCostModel("latency=1, host_devices=2, network=1e9, network_latency=9");
  ASSERT_TRUE(SetLinks(context, hosts, &mesh).ok());
  EXPECT_EQ(links.Of(mesh, {mesh.FullAxis(0)}, Collective::kAllGather).latency, 8);
  EXPECT_EQ(links.Of(mesh, {mesh.FullAxis(1)}, Collective::kAllGather).latency, 0);
}

TEST(Links, TheFastestAxisIsTheFastestThereIs) {
  Context context;
  BaseMesh mesh({2, 2}, DeviceOrder::Identity(4));
  mesh.SetNames("mesh", {{"data", {mesh.FullAxis(0)}}, {"model", {mesh.FullAxis(1)}}});
  // No axis has the 450e9 bytes per second of the machine.
  const CostModel cost = *ParseCostModel("h100, bandwidth.data=25e9, bandwidth.model=225e9");
  ASSERT_TRUE(SetLinks(context, cost, &mesh).ok());
  Links& links = context.Get<Links>();
  EXPECT_EQ(links.Of(mesh, {mesh.FullAxis(1)}, Collective::kAllGather).between_hosts, 0);
  EXPECT_EQ(links.Of(mesh, {mesh.FullAxis(1)}, Collective::kAllGather).weight, 2);
  EXPECT_EQ(links.Of(mesh, {mesh.FullAxis(0)}, Collective::kAllGather).between_hosts, 1);
  EXPECT_EQ(links.Of(mesh, {mesh.FullAxis(0)}, Collective::kAllGather).weight, 18);
  // All axes have the same rates, and others than the machine.
  const CostModel same = *ParseCostModel("bandwidth=100, bandwidth.data=50, bandwidth.model=50");
  ASSERT_TRUE(SetLinks(context, same, &mesh).ok());
  EXPECT_FALSE(links.alike());
  EXPECT_EQ(links.Of(mesh, {mesh.FullAxis(0)}, Collective::kAllGather).weight, 2);
  EXPECT_EQ(links.Of(mesh, {mesh.FullAxis(0)}, Collective::kAllGather).between_hosts, 0);
}

TEST(Links, DevicesOfAnyOrderAreInTheDomainsOfTheirPlaces) {
  Context context;
  const DeviceOrder order = *DeviceOrder::Iota({2, 4}, {1, 0});  // positions 0, 1 are devices 0, 4
  BaseMesh mesh({4, 2}, order);
  mesh.SetNames("mesh", {{"data", {mesh.FullAxis(0)}}, {"model", {mesh.FullAxis(1)}}});
  ASSERT_TRUE(SetLinks(context, *ParseCostModel("bandwidth.data=1e9"), &mesh).ok());
  Links& links = context.Get<Links>();
  EXPECT_FALSE(links.alike());
  EXPECT_EQ(links.OfGroup({0, 4}, Collective::kAllGather).weight, 1);
  EXPECT_EQ(links.OfGroup({0, 1}, Collective::kAllGather).weight, 50);
  // Devices that it does not have are on their own.
  EXPECT_EQ(links.OfGroup({3, 8}, Collective::kAllGather).weight, 50);

  ASSERT_TRUE(SetLinks(context, *ParseCostModel("bandwidth.data=1e9"), nullptr).ok());
  EXPECT_TRUE(links.alike());
  ASSERT_TRUE(SetLinks(context, CostModel(), &mesh).ok());
  EXPECT_TRUE(links.alike());
  const absl::Status status = SetLinks(context, *ParseCostModel("latency.rows=1"), &mesh);
  EXPECT_EQ(DiagnosticCode(status), "E211");
  EXPECT_NE(status.message().find("does not have"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("data, model"), absl::string_view::npos) << status;
}

// A gather over three axes goes over the slowest one first, while shards are small.
TEST(Links, TheSlowestAxisIsGatheredFirst) {
  Context context;
  BaseMesh* const mesh = InternBaseMesh(context, {2, 2, 2}, DeviceOrder::Identity(8));
  const Shape* const shape =
      context.WithDefaultLayout(context.MakeArray(ElementType::kF32, {64, 64, 64}));
  ShardingBuilder b(mesh, 3);
  for (int d = 0; d < 3; ++d) b.dims[d] = {mesh->FullAxis(d)};
  const Sharding* const from = b.Intern(context);
  const Sharding* const whole = ReplicatedSharding(context, mesh, 3);
  const CostModel cost = *ParseCostModel("bandwidth.x0=20e9, bandwidth.x1=400e9, bandwidth.x2=5e9");
  ASSERT_TRUE(SetLinks(context, cost, mesh).ok());
  const ReshardPlan& plan = PlanReshard(context, shape, from, whole);
  ASSERT_EQ(plan.moves.size(), 3);
  EXPECT_EQ(plan.moves[0].dim, 2);
  EXPECT_EQ(plan.moves[1].dim, 0);
  EXPECT_EQ(plan.moves[2].dim, 1);
  const double shard = 4 * 32 * 32 * 32;
  EXPECT_EQ(plan.bytes, 7 * shard);
  EXPECT_EQ(plan.between_hosts, 3 * shard);
  EXPECT_DOUBLE_EQ(cost.Seconds(plan.traffic()),
                   shard / 5e9 + 2 * shard / 20e9 + 4 * shard / 400e9 + 3 * cost.latency);
}

TEST(Links, PlansForThemTakeNoLongerThere) {
  std::mt19937 random(38);
  int less = 0;
  for (int k = 0; k < 1500; ++k) {
    RandomReshard r(random, 5, 3);
    SCOPED_TRACE(r.Text());
    const int64_t n = r.from->mesh()->num_devices();
    const ReshardPlan& plain = PlanReshard(r.context, r.shape, r.from, r.to);
    ASSERT_TRUE(
        SetLinks(r.context, Machine(static_cast<double>(std::max<int64_t>(1, n / 4)), 8)).ok());
    Links& links = r.context.Get<Links>();
    double before = 0;
    for (const Move& m : plain.moves) before += m.bytes * links.Of(m).weight;
    const ReshardPlan& plan = PlanReshard(r.context, r.shape, r.from, r.to);
    // The search prefers fewer moves to a few bytes, and smaller states.
    double slack = 1e-9;
    for (const Move& m : plain.moves) {
      slack += 64 * (1 + m.exchanges) + 1e-3 * static_cast<double>(LocalBytes(r.shape, *m.after));
    }
    ASSERT_LE(plan.weighted, before + slack);
    less += plan.weighted < before - slack;
  }
  EXPECT_GT(less, 20);
}

}  // namespace
}  // namespace shardcall
