// SPDX-License-Identifier: Apache-2.0
// Shardings over some of a program's devices: the devices that they name hold what they say, the
// others hold copies.
#include "gmock/gmock.h"
#include "shardcall/sharding/base/status.h"
#include "tests/partitioner/import/import_testing.h"

namespace shardcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A parameter, a value and a result of `size` elements, each with a sharding.
std::string Program3(const std::string& parameter, const std::string& value,
                     const std::string& result, int size = 24) {
  const std::string shape = absl::StrCat("f32[", size, "]");
  return EntryModule(absl::StrCat("  x = ", shape, " parameter(0), sharding=", parameter,
                                  "\n  y = ", shape, " sine(x), sharding=", value,
                                  "\n  ROOT z = ", shape, " negate(y), sharding=", result, "\n"),
                     "num_partitions=4");
}

TEST(ImportSubset, ParametersValuesAndResultsAreCopiedOnTheOtherDevices) {
  for (const int size : {24, 7}) {
    const Program p =
        Import(Program3("{devices=[2]0,1}", "{devices=[2]1,3}", "{devices=[2]<=[2]}", size));
    EXPECT_EQ(p.num_partitions, 4);
    ASSERT_EQ(p.meshes.size(), 1);  // all are cuts of one order
    EXPECT_EQ(ConstraintText(p, "x"), "[2@1]");
    EXPECT_EQ(ConstraintText(p, "y"), "[2@2]");
    EXPECT_EQ(ConstraintText(p, "z"), "[2@1]");
    EXPECT_THAT(p.warnings,
                ElementsAre("W212 %x: {devices=[2]0,1} is over 2 of 4 devices; the others hold "
                            "copies, as in {devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
                            HasSubstr("W212 %y: {devices=[2]1,3}"),
                            HasSubstr("W212 %z: {devices=[2]<=[2]}")));
  }
}

TEST(ImportSubset, ShardingsOverAllDevicesKeepTheMainMesh) {
  const Program p = Import(Program3("{devices=[2]3,1}", "{devices=[4]<=[4]}", "{replicated}"));
  ASSERT_EQ(p.meshes.size(), 2);
  EXPECT_TRUE(p.mesh->order().is_identity());
  const ShardingConstraint& x = *p.constraints[p.leaves.leaf(FindInstr(p, "x")).value];
  EXPECT_EQ(x.mesh->Coordinate(x.dims[0].axes, x.mesh->order().PositionOf(3)), 0);
  EXPECT_EQ(x.mesh->Coordinate(x.dims[0].axes, x.mesh->order().PositionOf(1)), 1);
}

TEST(ImportSubset, EachShardingIsToldOnce) {
  const Program p = Import(Program3("{devices=[2]0,1}", "{devices=[2]0,1}", "{devices=[2]0,1}"));
  EXPECT_EQ(p.warnings.size(), 1);
  EXPECT_THAT(Import(Program3("{replicated}", "{devices=[4]<=[4]}", "{replicated}")).warnings,
              IsEmpty());
}

TEST(ImportSubset, WhatDoesNotDivideTheDevicesIsWholeWithin) {
  const Program p = Import(Program3("{devices=[4]<=[4]}", "{devices=[3]0,1,2}", "{replicated}"));
  EXPECT_EQ(ConstraintText(p, "y"), "[]");
  EXPECT_THAT(p.warnings,
              ElementsAre("W212 %y: {devices=[3]0,1,2} is over 3 of 4 devices, which it does not "
                          "divide, and is taken as {replicated}"));
}

TEST(ImportSubset, WhatDoesNotDivideTheDevicesIsRefusedAtTheEdge) {
  const char* three = "{devices=[3]<=[3]}";
  for (const std::string& text :
       {Program3(three, "{replicated}", "{replicated}"), Program3(three, three, "{replicated}"),
        Program3("{replicated}", "{replicated}", three), Program3("{replicated}", three, three)}) {
    const absl::Status s = TryImport(text).status();
    EXPECT_EQ(DiagnosticCode(s), "E163") << s;
    EXPECT_THAT(s.message(), HasSubstr("2 devices or more, of a number that divides 4"));
    EXPECT_THAT(s.message(), HasSubstr("found 3."));
  }
}

TEST(ImportSubset, ManualRegionsRunOnAllDevices) {
  const auto region = [](const std::string& outside, const std::string& inside,
                         const std::string& behind) {
    return TryImport(
               EntryModule(absl::StrCat("  x = f32[8] parameter(0)\n  c = f32[8] custom-call(x), "
                                        "custom_call_target=\"Sharding\", sharding=",
                                        outside,
                                        "\n  m = f32[4] custom-call(c), "
                                        "custom_call_target=\"SPMDFullToShardShape\", sharding=",
                                        inside,
                                        "\n  ROOT f = f32[8] custom-call(m), "
                                        "custom_call_target=\"SPMDShardToFullShape\", sharding=",
                                        behind, "\n"),
                           "num_partitions=4"))
        .status();
  };
  const std::string all = "{devices=[2,2]<=[4] last_tile_dim_replicate}";
  const std::string some = "{devices=[2]<=[2]}";
  const std::string partly = "{devices=[1,2]<=[2] last_tile_dims={manual}}";  // {manual}, as read
  EXPECT_TRUE(region(all, "{manual}", all).ok()) << region(all, "{manual}", all);
  EXPECT_TRUE(region(all, partly, all).ok());
  for (const absl::Status& s : {region(some, "{manual}", all), region(all, "{manual}", some),
                                region(all, "{devices=[2,1]<=[2] last_tile_dims={manual}}", all)}) {
    EXPECT_EQ(DiagnosticCode(s), "E163") << s;
    EXPECT_THAT(s.message(), HasSubstr("on all devices"));
  }
}

// Without a number of partitions a program has the fewest that its shardings can be over.
TEST(ImportSubset, TheNumberOfDevicesFollowsFromTheHighest) {
  const std::string body =
      "  x = f32[16,8]{1,0} parameter(0), sharding={devices=[2,2]0,1,4,5}\n"
      "  ROOT z = f32[16,8]{1,0} negate(x)\n";
  const Program p = Import(EntryModule(body));
  EXPECT_EQ(p.num_partitions, 8);
  EXPECT_EQ(ConstraintText(p, "x"), "[2@4, 2@1]");
  EXPECT_EQ(Import(EntryModule(body), {.num_partitions = 16}).num_partitions, 16);
  EXPECT_EQ(DiagnosticCode(TryImport(EntryModule(body), {.num_partitions = 4}).status()), "E051");
}

TEST(ImportSubset, ListsThatCannotBeAreRefused) {
  const auto code = [](const std::string& sharding) {
    const absl::Status s = TryImport(Program3(sharding, "{replicated}", "{replicated}")).status();
    return std::string(DiagnosticCode(s));
  };
  EXPECT_EQ(code("{devices=[2]1,1}"), "E160");
  EXPECT_EQ(code("{devices=[2]1,4}"), "E051");
  EXPECT_EQ(code("{devices=[2]0,9223372036854775807}"), "E160");
  EXPECT_EQ(code("{devices=[2,1]0,1}"), "E163");  // the rank
}

}  // namespace
}  // namespace shardcall
