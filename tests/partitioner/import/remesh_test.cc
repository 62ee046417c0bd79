// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/import/remesh.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"
#include "tests/partitioner/import/import_testing.h"

namespace shardcall {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<std::string> Remeshed(const std::string& text, std::vector<AxisSize> sizes) {
  absl::StatusOr<Module> module = ParseModule(std::make_shared<const std::string>(text),
                                              std::make_shared<Context>(), "test.hlo");
  if (!module.ok()) return module.status();
  SHARDCALL_RETURN_IF_ERROR(Remesh(sizes, &*module));
  return PrintModule(*module);
}

std::string Tiled(const std::string& sharding, const std::string& root = "negate(p)") {
  return EntryModule("  p = f32[24,24] parameter(0), sharding={" + sharding +
                         "}\n  ROOT n = f32[24,24] " + root + "\n",
                     "num_partitions=8");
}

std::string Error(const absl::StatusOr<std::string>& result) {
  return result.ok() ? "no error:\n" + *result : std::string(result.status().message());
}

TEST(Remesh, ResizesNamedAxesInEveryMeshOfTheDictionary) {
  const std::string header =
      R"(num_partitions=8, frontend_attributes={xla.sdy.meshes="{a = #sdy.mesh<[\"data\"=4, \"model\"=2]>, )"
      R"(one = #sdy.mesh<[], device_ids=[0]>}"})";
  const auto text =
      Remeshed(EntryModule("  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n", header),
               {{"data", 3}, {"model", 1}});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr(R"(#sdy.mesh<["data"=3, "model"=1]>)"));
  EXPECT_THAT(*text, HasSubstr("device_ids=[0]"));
  EXPECT_THAT(*text, HasSubstr("num_partitions=3"));
}

TEST(Remesh, ResizesInlineMeshes) {
  const auto text = Remeshed(Tiled("mesh['data'=4,'model'=2], [{'data'}, {}]"), {{"data", 2}});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("mesh['data'=2,'model'=2]"));
  EXPECT_THAT(*text, HasSubstr("num_partitions=4"));
}

TEST(Remesh, ResizesTheFirstAxisOfTilingsWhereverItStands) {
  const struct {
    const char* from;
    int64_t size;
    const char* to;
  } kCases[] = {
      {"devices=[4,2]<=[8]", 3, "devices=[3,2]<=[6]"},
      {"devices=[2,4]<=[4,2]T(1,0)", 3, "devices=[2,3]<=[3,2]T(1,0)"},
      {"devices=[4,1,2]<=[8] last_tile_dim_replicate", 16,
       "devices=[16,1,2]<=[32] last_tile_dim_replicate"},
      {"devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate", 1, "devices=[1,2]<=[2]"},
      {"devices=[8,1]<=[8]", 1, "devices=[1,1]<=[1]"},
      // Over two of the eight devices: four hold a copy of each tile, then eight.
      {"devices=[2,1]<=[2]", 8, "devices=[2,1,8]<=[8,2]T(1,0) last_tile_dim_replicate"},
  };
  for (const auto& c : kCases) {
    const auto text = Remeshed(Tiled(c.from), {{"x0", c.size}});
    ASSERT_TRUE(text.ok()) << c.from << ": " << text.status();
    EXPECT_THAT(*text, HasSubstr(std::string("sharding={") + c.to + "}")) << c.from;
  }
}

TEST(Remesh, TheFirstAxisIsThatOfTheCommonRefinement) {
  const std::string module = EntryModule(
      "  p = f32[24,24] parameter(0), sharding={devices=[8,1]<=[8]}\n"
      "  ROOT n = f32[24,24] negate(p), sharding={devices=[2,4]<=[8]}\n",
      "num_partitions=8");
  const auto text = Remeshed(module, {{"x0", 3}});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("devices=[12,1]<=[12]"));
  EXPECT_THAT(*text, HasSubstr("devices=[3,4]<=[12]"));
}

TEST(Remesh, WhatIsMadeForANumberOfDevicesIsRefused) {
  EXPECT_THAT(Error(Remeshed(Tiled("devices=[4,2]3,1,2,0,7,6,4,5"), {{"x0", 2}})),
              HasSubstr("E053 a device list has no axes"));
  EXPECT_THAT(Error(Remeshed(Tiled("devices=[8,1]<=[8]",
                                   "custom-call(p), custom_call_target=\"SPMDFullToShardShape\""),
                             {{"x0", 2}})),
              HasSubstr("E053 a manual region"));
  EXPECT_THAT(Error(Remeshed(EntryModule("  p = f32[8] parameter(0)\n  ROOT g = f32[64] "
                                         "all-gather(p), dimensions={0}, channel_id=1, "
                                         "use_global_device_ids=true, replica_groups=[1,8]<=[8]\n",
                                         "num_partitions=8"),
                             {{"x0", 2}})),
              HasSubstr("E053 all-gather"));
}

TEST(Remesh, AxesAndSizesThatCannotBeAreRefused) {
  const std::string named = Tiled("mesh['data'=4,'model'=2], [{'data'}, {}]");
  EXPECT_THAT(
      Error(Remeshed(named, {{"rows", 2}})),
      testing::AllOf(HasSubstr("E053 no mesh has an axis \"rows\""), HasSubstr("data, model")));
  EXPECT_THAT(Error(Remeshed(Tiled("devices=[4,2]<=[8]"), {{"x1", 4}})),
              testing::AllOf(HasSubstr("expected x0, found x1"), HasSubstr("resize x0")));
  EXPECT_THAT(Error(Remeshed(named, {{"data", 0}})), HasSubstr("E053"));
  EXPECT_THAT(Error(Remeshed(named, {{"data", 2}, {"data", 3}})),
              HasSubstr("E053 an axis is given two sizes"));
  EXPECT_THAT(Error(Remeshed(named, {{"data", int64_t{1} << 40}})), HasSubstr("E053"));
  EXPECT_THAT(Error(Remeshed(named, {{"data", (int64_t{1} << 31) - 1}})),
              Not(HasSubstr("no error")));
}

}  // namespace
}  // namespace shardcall
