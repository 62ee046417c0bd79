// SPDX-License-Identifier: Apache-2.0
// nccl_allreduce in manual regions: as the all-reduce of the program, over the same
// groups; and outside of them, where it has no meaning.
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

// Mesh of 4 by 2, both axes manual: x enters cut over both.
constexpr char kRegion[] = R"(
ENTRY main {
  p = f32[@(A*4),@(B*2)] parameter(0)<0:2>
  c = f32[@(A*4),@(B*2)] custom-call(p), custom_call_target="Sharding", sharding={devices=[4,2]<=[8]}
  x = f32[@A,@B] custom-call(c), custom_call_target="SPMDFullToShardShape", sharding={manual}
BODY
  f = f32[@(A*4),@(B*2)] custom-call(y), custom_call_target="SPMDShardToFullShape", sharding={devices=[4,2]<=[8]}
  ROOT r = f32[@(A*4),@(B*2)] subtract(f, p)<1:2>
}
)";

std::string Call(const std::string& result, const std::string& operand, const std::string& config,
                 const std::string& more = "") {
  return "  " + result + " = f32[@A,@B] custom-call(" + operand +
         "), custom_call_target=\"nccl_allreduce\", api_version=API_VERSION_TYPED_FFI, "
         "backend_config=" +
         config + more + ", sharding={manual}\n";
}

void VerifyRegion(const std::string& body) {
  VerifyFamily({.text = absl::StrReplaceAll(kRegion, {{"BODY", body}}),
                .sizes = {{{'A', 2}, {'B', 4}}, {{'A', 3}, {'B', 2}}},
                .meshes = {{{4, 2}}},
                .max_cases = 30});
}

constexpr char kColumns[] =
    "replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, group_size = 4 : i64";
constexpr char kRows[] =
    "replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, "
    "group_size = 2 : i64";

TEST(CollectiveTargets, ReduceOverAllDevicesOfARegion) { VerifyRegion(Call("y", "x", "{}")); }

TEST(CollectiveTargets, ReduceOverGroups) {
  VerifyRegion(Call("y", "x", std::string("{") + kColumns + "}"));
  VerifyRegion(Call("y", "x", std::string("{op = \"max\", ") + kRows + "}"));
}

TEST(CollectiveTargets, CallsWithSideEffectsMeetInTheirOrder) {
  const std::string effect = ", custom_call_has_side_effect=true";
  VerifyRegion(Call("a", "x", std::string("{") + kColumns + "}", effect) +
               Call("b", "x", std::string("{op = \"min\", ") + kRows + "}", effect) +
               Call("unused", "b", "{}", effect) +
               "  y = f32[@A,@B] add(a, b), sharding={manual}\n");
}

std::string WithoutRegion(const std::string& config) {
  return R"(HloModule m, num_partitions=4

ENTRY main {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  ROOT y = f32[8] custom-call(x), custom_call_target="nccl_allreduce", api_version=API_VERSION_TYPED_FFI, backend_config=)" +
         config + R"(
}
)";
}

TEST(CollectiveTargets, OutsideOfARegionTheyAreRefused) {
  EXPECT_THAT(PartitionText(WithoutRegion("{}"), {}), Fails("E122", "nccl_allreduce"));
  EXPECT_THAT(PartitionText(WithoutRegion("{replica_groups = dense<[0, 1]> : tensor<2xi64>}"), {}),
              Fails("E122", "shard_map"));
}

// Axis a of 4 is manual, axis b of 2 is free.
std::string PartlyManual(const std::string& groups) {
  return R"(HloModule m, num_partitions=8, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=4, "b"=2]>}}

body {
  x = f32[2,8] parameter(0)
  ROOT y = f32[2,8] custom-call(x), custom_call_target="nccl_allreduce", api_version=API_VERSION_TYPED_FFI, backend_config={)" +
         groups + R"(}
}

ENTRY main {
  p = f32[8,8] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"a\"}, {\"b\"}]>"}
  x = f32[2,8] custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"a\"}, {?}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"a\"}>"}
  c = f32[2,8] call(x), to_apply=body, frontend_attributes={inlineable="false"}
  ROOT f = f32[8,8] custom-call(c), custom_call_target="xla.sdy.LocalToGlobalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"a\"}, {?}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"a\"}>"}
}
)";
}

TEST(CollectiveTargets, FreeAxesShardWhatIsReducedOverManualOnes) {
  const auto program = PartitionText(PartlyManual(kColumns), {});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_NE(LocalText(**program).find("f32[2,4]{1,0} custom-call"), std::string::npos)
      << LocalText(**program);
  EXPECT_EQ(WhyNotEqual(PartlyManual(kColumns), {}), "");
}

TEST(CollectiveTargets, GroupsOverFreeAxesAreRefused) {
  EXPECT_THAT(PartitionText(PartlyManual(kRows), {}), Fails("E122", "devices 0 and 1"));
  EXPECT_THAT(PartitionText(PartlyManual("op = \"sum\""), {}), Fails("E122", "replica_groups"));
  EXPECT_THAT(PartitionText(PartlyManual("replica_groups = dense<[0, 9]> : tensor<2xi64>"), {}),
              Fails("E122", "below 8"));
}

}  // namespace
}  // namespace shardcall
