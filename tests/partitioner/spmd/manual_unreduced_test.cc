// SPDX-License-Identifier: Apache-2.0
// Values that enter and leave manual regions unreduced: outside they are the sum, or the maximum or
// minimum, of what the devices have inside. Against the evaluation in which the region runs once
// per device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/import/export.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

// Mesh a=4, b=2. All axes are manual; IN and OUT are shardings over them.
std::string Text(const std::string& in, const std::string& body, const std::string& out,
                 const std::string& head = "  g = f32[8,12] add(p, p)") {
  return absl::StrReplaceAll(
      R"(HloModule test, num_partitions=8, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=4, "b"=2]>}}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  p = f32[8,12] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"a\"}, {\"b\"}]>"}
HEAD
  x = f32[2,12] custom-call(g), custom_call_target="xla.sdy.GlobalToLocalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, IN>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"a\", \"b\"}>"}
BODY
  f = f32[8,12] custom-call(y), custom_call_target="xla.sdy.LocalToGlobalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.manual_axes="#sdy<manual_axes{\"a\", \"b\"}>",xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, OUT>]>"}
  ROOT r = f32[8,12] subtract(f, p)
}
)",
      {{"IN", in}, {"OUT", out}, {"BODY", body}, {"HEAD", head}});
}
constexpr char kRows[] = R"([{\"a\"}, {}])";
constexpr char kSummed[] = R"([{\"a\"}, {}], unreduced={\"b\"})";
// Each device adds its own number.
constexpr char kDiffers[] = R"(  i = u32[] partition-id()
  n = f32[] convert(i)
  m = f32[2,12] broadcast(n), dimensions={}
  y = f32[2,12] add(x, m))";
constexpr char kOwnSum[] =
    R"(  y = f32[2,12] all-reduce(x), channel_id=1, replica_groups={{0,1},{2,3},{4,5},{6,7}}, use_global_device_ids=true, to_apply=add)";

int Reductions(const std::string& text) {
  const auto program = PartitionText(text, {});
  EXPECT_TRUE(program.ok()) << program.status();
  return CountOpcode(**program, Opcode::kAllReduce) +
         CountOpcode(**program, Opcode::kReduceScatter);
}

TEST(ManualUnreduced, WhatLeavesIsTheSumOfWhatTheDevicesHave) {
  const std::string text = Text(kRows, kDiffers, kSummed);
  EXPECT_EQ(WhyNotEqual(text, {}), "");
  EXPECT_EQ(Reductions(text), 1);
}

TEST(ManualUnreduced, APartialSumEntersAsItIs) {
  // Contracted over b, and summed by the program itself.
  const std::string text = Text(kSummed, kOwnSum, kRows, R"(
  q = f32[12,12] parameter(1), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"b\"}, {}]>"}
  d = f32[8,12] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[8,12] custom-call(d), custom_call_target="Sharding", frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{\"a\"}, {}], unreduced={\"b\"}>]>"})");
  EXPECT_EQ(WhyNotEqual(text, {}), "");
  EXPECT_EQ(Reductions(text), 1);
}

TEST(ManualUnreduced, AWholeValueEntersOnce) {
  EXPECT_EQ(WhyNotEqual(Text(kSummed, kOwnSum, kRows), {}), "");
  EXPECT_EQ(WhyNotEqual(Text(kSummed, "  y = f32[2,12] add(x, x)", kSummed), {}), "");
}

TEST(ManualUnreduced, AShardEntersAsItsPartOfTheSum) {
  const std::string text = Text(kSummed, kOwnSum, kRows);
  const auto program = PartitionText(text, {});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(LocalText(**program), testing::HasSubstr("all-reduce(%dynamic-update-slice)"));
}

TEST(ManualUnreduced, GspmdSaysItWithTiles) {
  const std::string text = R"(HloModule test, num_partitions=8

ENTRY main {
  p = f32[8,12] parameter(0), sharding={devices=[4,2]<=[8]}
  c = f32[8,12] custom-call(p), custom_call_target="Sharding", sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  x = f32[2,12] custom-call(c), custom_call_target="SPMDFullToShardShape", sharding={manual}
  i = u32[] partition-id()
  n = f32[] convert(i)
  m = f32[2,12] broadcast(n), dimensions={}
  y = f32[2,12] add(x, m)
  o = f32[2,12] copy(y), sharding={manual}
  f = f32[8,12] custom-call(o), custom_call_target="SPMDShardToFullShape", sharding={devices=[4,1,2]<=[8] last_tile_dims={unreduced}}
  ROOT r = f32[8,12] subtract(f, p)
}
)";
  EXPECT_EQ(WhyNotEqual(text, {}), "");
  EXPECT_EQ(Reductions(text), 1);
}

// The text with the reduction `op` in the place of sums.
std::string By(const std::string& op, std::string text) {
  return absl::StrReplaceAll(text,
                             {{"unreduced={", absl::StrCat("unreduced=", op.substr(0, 3), "{")},
                              {"f32[] add(a, b)", absl::StrCat("f32[] ", op, "(a, b)")}});
}

TEST(ManualUnreduced, MaximaAndMinimaAreAsSums) {
  for (const std::string op : {"maximum", "minimum"}) {
    const std::string leaves = By(op, Text(kRows, kDiffers, kSummed));
    EXPECT_EQ(WhyNotEqual(leaves, {}), "");
    EXPECT_EQ(Reductions(leaves), 1);
    EXPECT_EQ(WhyNotEqual(By(op, Text(kSummed, kOwnSum, kRows)), {}), "");
    EXPECT_EQ(WhyNotEqual(By(op, Text(kSummed, "  y = f32[2,12] add(x, x)", kSummed)), {}), "");
  }
}

TEST(ManualUnreduced, GspmdSaysMaximaInMetadata) {
  const std::string text = R"(HloModule test, num_partitions=8

ENTRY main {
  p = f32[8,12] parameter(0), sharding={devices=[4,2]<=[8]}
  c = f32[8,12] custom-call(p), custom_call_target="Sharding", sharding={devices=[4,1,2]<=[8] last_tile_dim_replicate}
  x = f32[2,12] custom-call(c), custom_call_target="SPMDFullToShardShape", sharding={manual}
  i = u32[] partition-id()
  n = f32[] convert(i)
  m = f32[2,12] broadcast(n), dimensions={}
  y = f32[2,12] multiply(x, m)
  o = f32[2,12] copy(y), sharding={manual}
  f = f32[8,12] custom-call(o), custom_call_target="SPMDShardToFullShape", sharding={devices=[4,1,2]<=[8] last_tile_dims={unreduced} metadata={op_type="sdy::reduction_op" op_name="MAX"}}
  ROOT r = f32[8,12] subtract(f, p)
}
)";
  EXPECT_EQ(WhyNotEqual(text, {}), "");
  EXPECT_EQ(Reductions(text), 1);
}

TEST(ManualUnreduced, ThePropagatedTextPartitionsToTheSame) {
  for (const std::string& text : {Text(kRows, kDiffers, kSummed), Text(kSummed, kOwnSum, kRows)}) {
    auto module = ParseModule(std::make_shared<const std::string>(text),
                              std::make_shared<Context>(), "test.hlo");
    ASSERT_TRUE(module.ok()) << module.status();
    const auto program = PropagateShardings(*std::move(module), {});
    ASSERT_TRUE(program.ok()) << program.status();
    const auto exported = ExportShardings((*program)->program, (*program)->shardings.sharding);
    ASSERT_TRUE(exported.ok()) << exported.status();
    TextOptions as_it_is;
    as_it_is.propagate = false;
    const auto again = PartitionText(PrintModule(*exported), as_it_is);
    ASSERT_TRUE(again.ok()) << again.status();
    const auto first = PartitionText(text, {});
    EXPECT_EQ(LocalText(**again), LocalText(**first));
  }
}

}  // namespace
}  // namespace shardcall
