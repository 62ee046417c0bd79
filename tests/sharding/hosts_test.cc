// SPDX-License-Identifier: Apache-2.0
// What of a reshard goes between hosts, and plans that send less there.
#include "shardcall/sharding/reshard/hosts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "shardcall/sharding/base/status.h"
#include "tests/sharding/mesh_cases.h"
#include "tests/sharding/random_reshard.h"

namespace shardcall {
namespace {

using internal::Hosts;
using internal::Pattern;
using internal::SetHosts;

CostModel Machine(double host_devices, double slower) {
  CostModel cost;
  cost.host_devices = host_devices;
  cost.network = cost.bandwidth / slower;
  return cost;
}

// A ring of all devices of the group, those of one host next to each other, and the network of a
// host shared by its devices: of each part, every host gets one copy.
TEST(Hosts, OfARingEachHostGetsEveryPartOnce) {
  EXPECT_EQ(Hosts::Share(8, 8, Pattern::kRing), 0);
  EXPECT_EQ(Hosts::Share(8, 4, Pattern::kRing), 1.0 / 7);  // 1 other host of 2, of 7 parts
  EXPECT_EQ(Hosts::Share(8, 1, Pattern::kRing), 1);
  EXPECT_EQ(Hosts::Share(8, 4, Pattern::kPairwise), 4.0 / 7);
  EXPECT_EQ(Hosts::Share(8, 4, Pattern::kShift), 1);
  EXPECT_EQ(Hosts::Share(4, 4, Pattern::kShift), 0);
}

// Against the devices of each group, counted: all groups are alike where hosts divide the mesh.
TEST(Hosts, GroupsAreThoseOfTheMesh) {
  for (const std::vector<int64_t>& sizes : SmallMeshSizes()) {
    int64_t n = 1;
    for (int64_t size : sizes) n *= size;
    if (n % 2 != 0) continue;
    for (const DeviceOrder& order :
         {DeviceOrder::Identity(n), *DeviceOrder::Iota({2, n / 2}, {1, 0})}) {
      Context context;
      const BaseMesh& mesh = *InternBaseMesh(context, sizes, order);
      for (const int64_t devices : {n / 2, n}) {
        ASSERT_TRUE(SetHosts(context, Machine(static_cast<double>(devices), 4)).ok());
        for (const AxisList& axes : AllLists(mesh, 2)) {
          const std::vector<int64_t> at = Coordinates(mesh, axes);
          AxisList others = Complement(mesh, axes);
          const std::vector<int64_t> group = Coordinates(mesh, others);
          int64_t here = 0;
          for (int64_t p = 0; p < n; ++p) {
            here +=
                group[p] == group[0] && order.DeviceAt(p) / devices == order.DeviceAt(0) / devices;
          }
          EXPECT_EQ(context.Get<Hosts>().Share(mesh, axes, Pattern::kPairwise),
                    Hosts::Share(AxesSize(axes), here, Pattern::kPairwise));
        }
      }
    }
  }
}

// f32[1024,1024] over 4 hosts of 2 devices: gathered over the hosts first, while shards are small.
TEST(Hosts, WhatGoesBetweenThemGoesWhileItIsSmall) {
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

  ASSERT_TRUE(SetHosts(context, Machine(2, 10)).ok());
  const ReshardPlan& on_four = PlanReshard(context, shape, from, whole);
  EXPECT_EQ(on_four.moves[0].dim, 0);
  EXPECT_EQ(on_four.bytes, 7 * shard);
  EXPECT_EQ(on_four.between_hosts, 3 * shard);
  EXPECT_EQ(on_four.weighted, 7 * shard + 3 * shard * 9);
  EXPECT_EQ(on_one.moves[0].dim, 1);  // is still there

  ASSERT_TRUE(SetHosts(context, CostModel()).ok());
  EXPECT_EQ(PlanReshard(context, shape, from, whole).between_hosts, 0);
}

TEST(Hosts, DevicesThatDifferAlongSlowAxesAreOnDifferentOnes) {
  Context context;
  const DeviceOrder order = *DeviceOrder::Iota({2, 4}, {1, 0});  // positions 0, 1 are devices 0, 4
  BaseMesh mesh({4, 2}, order);
  mesh.SetNames("mesh", {{"data", {mesh.FullAxis(0)}}, {"model", {mesh.FullAxis(1)}}});
  const auto hosts = internal::HostsByAxes(*ParseCostModel("bandwidth.data=1e9"), &mesh);
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ(*hosts, (std::vector<int64_t>{0, 1, 2, 3, 0, 1, 2, 3}));
  // All others than the fast ones.
  EXPECT_EQ(*internal::HostsByAxes(*ParseCostModel("bandwidth=1, bandwidth.model=2"), &mesh),
            *hosts);
  EXPECT_TRUE(internal::HostsByAxes(CostModel(), &mesh)->empty());
  EXPECT_TRUE(internal::HostsByAxes(*ParseCostModel("bandwidth.data=1e9"), nullptr)->empty());
  ASSERT_TRUE(SetHosts(context, *ParseCostModel("bandwidth.data=1e9"), &mesh).ok());
  EXPECT_FALSE(context.Get<Hosts>().one());
  EXPECT_EQ(context.Get<Hosts>().slower(), 50);
  EXPECT_EQ(context.Get<Hosts>().host_of(5), 1);
  BaseMesh three({2, 2, 2}, DeviceOrder::Identity(8));
  three.SetNames("three", {{"data", {three.FullAxis(0)}},
                           {"model", {three.FullAxis(1)}},
                           {"stage", {three.FullAxis(2)}}});
  const auto says = [&](const char* text, const char* part) {
    const absl::Status status = SetHosts(context, *ParseCostModel(text), &three);
    EXPECT_EQ(DiagnosticCode(status), "E211") << text;
    EXPECT_NE(status.message().find(part), absl::string_view::npos) << status;
    EXPECT_NE(status.message().find("data, model, stage"), absl::string_view::npos) << status;
  };
  says("bandwidth.rows=1e9", "does not have");
  says("bandwidth.data=1, bandwidth.model=2", "none of stage");
}

TEST(Hosts, PlansForThemTakeNoLongerThere) {
  std::mt19937 random(38);
  int less = 0;
  for (int k = 0; k < 1500; ++k) {
    RandomReshard r(random, 5, 3);
    SCOPED_TRACE(r.Text());
    const int64_t n = r.from->mesh()->num_devices();
    const ReshardPlan& plain = PlanReshard(r.context, r.shape, r.from, r.to);
    ASSERT_TRUE(
        SetHosts(r.context, Machine(static_cast<double>(std::max<int64_t>(1, n / 4)), 8)).ok());
    Hosts& hosts = r.context.Get<Hosts>();
    double before = 0;
    for (const Move& m : plain.moves) before += hosts.Weighted(m.bytes, m.bytes * hosts.Share(m));
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
