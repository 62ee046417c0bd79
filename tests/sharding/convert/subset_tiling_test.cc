// SPDX-License-Identifier: Apache-2.0
// Tilings over some devices of a program, and the tilings over all that they become.
#include "shardcall/sharding/convert/subset_tiling.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert/mesh_set.h"

namespace shardcall {
namespace {

std::string Extended(const char* text, int64_t devices) {
  const auto all = OverAllDevices(*ParseHloSharding(text), devices);
  return all.ok() ? all->Print() : std::string(DiagnosticCode(all.status()));
}

TEST(SubsetTiling, DevicesOfAGridAreCopiedByThoseOfTheSameDigits) {
  const struct {
    const char* some;
    int64_t devices;
    const char* all;
  } kCases[] = {
      {"{devices=[2]<=[2]}", 4, "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"},
      {"{devices=[2]0,1}", 4, "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"},
      {"{devices=[2]2,3}", 4, "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"},
      {"{devices=[2]1,3}", 4, "{devices=[2,2]<=[4] last_tile_dim_replicate}"},
      {"{devices=[2]3,1}", 4, "{devices=[2,2]2,3,0,1 last_tile_dim_replicate}"},
      {"{devices=[2,1]1,2}", 4, "{devices=[2,1,2]1,3,0,2 last_tile_dim_replicate}"},
      {"{devices=[3]0,2,4}", 6, "{devices=[3,2]<=[6] last_tile_dim_replicate}"},
      {"{devices=[2,2]0,1,4,5}", 8, "{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}"},
      {"{devices=[2,1,2]0,4,1,5 last_tile_dim_replicate}", 8,
       "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}"},
      {"{devices=[2,2]<=[2,2]T(1,0)}", 8,
       "{devices=[2,2,2]<=[2,2,2]T(2,1,0) last_tile_dim_replicate}"},
      {"{devices=[2,1,2]<=[4] last_tile_dim_replicate}", 8,
       "{devices=[2,1,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}"},
      {"{devices=[2,2]<=[4] last_tile_dims={unreduced}}", 8,
       "{devices=[2,2,2]<=[2,4]T(1,0) last_tile_dims={unreduced, replicated}}"},
  };
  for (const auto& c : kCases) EXPECT_EQ(Extended(c.some, c.devices), c.all) << c.some;
}

TEST(SubsetTiling, DevicesOfNoGridAreCopiedInOrder) {
  EXPECT_EQ(Extended("{devices=[2]0,3}", 4), "{devices=[2,2]<=[4] last_tile_dim_replicate}");
  EXPECT_EQ(Extended("{devices=[2]5,0}", 6), "{devices=[2,3]1,2,5,0,3,4 last_tile_dim_replicate}");
}

TEST(SubsetTiling, WhatHasNoEqualOverAllIsRefused) {
  EXPECT_EQ(Extended("{devices=[3]0,1,2}", 4), "E163");
  EXPECT_EQ(Extended("{devices=[3]<=[3]}", 4), "E163");
  EXPECT_EQ(Extended("{devices=[1]2}", 4), "E163");
  EXPECT_EQ(Extended("{devices=[2,2]<=[4] last_tile_dims={manual}}", 8), "E163");
  EXPECT_EQ(Extended("{devices=[2]0,1}", int64_t{1} << 24), "E163");  // too long a list
  EXPECT_EQ(Extended("{devices=[2]<=[2]}", int64_t{1} << 24),
            "{devices=[2,8388608]<=[8388608,2]T(1,0) last_tile_dim_replicate}");
}

TEST(SubsetTiling, DevicesThatCannotBeAreRefused) {
  EXPECT_EQ(Extended("{devices=[2]1,1}", 4), "E160");
  EXPECT_EQ(Extended("{devices=[2]0,9223372036854775807}", 4), "E160");
  EXPECT_EQ(Extended("{devices=[2]0,7}", 4), "E163");
  HloSharding other = *ParseHloSharding("{devices=[2]0,1}");
  other.tile = {4};
  EXPECT_EQ(DiagnosticCode(OverAllDevices(other, 8).status()), "E160");
  other.tile = {0};
  EXPECT_EQ(DiagnosticCode(OverAllDevices(other, 8).status()), "E160");
}

TEST(SubsetTiling, EveryNamedDeviceKeepsItsTileAndEveryTileHasAsManyDevices) {
  for (const int64_t devices : {4, 6}) {
    std::vector<int64_t> order(devices);
    for (int64_t d = 0; d < devices; ++d) order[d] = d;
    do {
      for (int64_t tiles = 2; tiles < devices; ++tiles) {
        if (devices % tiles != 0) continue;
        HloSharding some;
        some.kind = HloSharding::Kind::kTiled;
        some.tile = {tiles};
        some.list.assign(order.begin(), order.begin() + tiles);
        Context context;
        MeshCollector collector;
        ASSERT_TRUE(collector.AddTiling(some).ok());
        const auto set = collector.Finish(context, devices);
        ASSERT_TRUE(set.ok()) << set.status();
        const auto c = set->FromHlo(some, 1);
        ASSERT_TRUE(c.ok()) << c.status();
        const auto tile_of = [&](int64_t device) {
          return c->mesh->Coordinate(c->dims[0].axes, c->mesh->order().PositionOf(device));
        };
        for (int64_t t = 0; t < tiles; ++t) ASSERT_EQ(tile_of(some.list[t]), t) << some.Print();
        std::map<int64_t, int64_t> holders;
        for (int64_t d = 0; d < devices; ++d) ++holders[tile_of(d)];
        for (const auto& [tile, count] : holders) ASSERT_EQ(count, devices / tiles);
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

}  // namespace
}  // namespace shardcall
