// SPDX-License-Identifier: Apache-2.0
// A mixture of experts with tokens, experts, places and features sharded, in all
// combinations: sums of small integers, bit for bit.
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

constexpr char kTyped[] = "api_version=API_VERSION_TYPED_FFI";

// T tokens of 2 choices, E experts of C places, D features. Random experts are 0
// to 7: some do not exist, and some are full.
std::string MoeProgram() {
  const std::string text = R"(
  x = f32[@T,@D] parameter(0)<0:2>
  e = s32[@T,2] parameter(1)
  g = f32[@T,2] parameter(2)
  p = s32[@T,2] custom-call(e), custom_call_target="moe_positions", TYPED
  i = f32[@E,@C,@D] custom-call(x, e, p), custom_call_target="moe_dispatch", TYPED
  s = f32[@E,@C,@D] copy(i)<1:3>
  o = f32[@E,@C,@D] add(s, s)
  y = f32[@T,@D] custom-call(o, e, p, g), custom_call_target="moe_combine", TYPED
  r = f32[@T,@D] copy(y)<2:2>
  ROOT t = (f32[@E,@C,@D], f32[@T,@D]) tuple(s, r)
)";
  return absl::StrReplaceAll(text, {{"TYPED", kTyped}});
}

TEST(MoeTargets, TokensExpertsPlacesAndFeaturesMayBeSharded) {
  VerifyFamily({.text = MoeProgram(),
                .sizes = {{{'T', 16}, {'D', 4}, {'E', 8}, {'C', 4}},
                          {{'T', 9}, {'D', 3}, {'E', 6}, {'C', 2}},
                          {{'T', 3}, {'D', 5}, {'E', 3}, {'C', 1}},
                          {{'T', 1}, {'D', 1}, {'E', 5}, {'C', 3}}},
                .meshes = {{{2, 2}}, {{4, 2}}, {{3, 2}}},
                .max_cases = 400,
                .no_fallback = true});
}

TEST(MoeTargets, GroupsAreABatch) {
  VerifyFamily({.text = R"(
  x = f32[@G,6,2] parameter(0)<0:3>
  e = s32[@G,6,1] parameter(1)
  p = s32[@G,6,1] parameter(2)
  i = f32[@G,5,3,2] custom-call(x, e, p), custom_call_target="moe_dispatch", api_version=API_VERSION_TYPED_FFI
  ROOT s = f32[@G,5,3,2] copy(i)
)",
                .sizes = {{{'G', 4}}, {{'G', 3}}},
                .meshes = {{{2, 2}}, {{3, 2}}},
                .max_cases = 150,
                .no_fallback = true});
}

// Tokens and experts over the same devices: each device sends its tokens' parts,
// and no device ever has all tokens.
TEST(MoeTargets, TokensAreSummedIntoTheirExpertsShard) {
  const auto program = PartitionText(R"(HloModule m, num_partitions=4

ENTRY main {
  x = f32[64,16] parameter(0), sharding={devices=[4,1]<=[4]}
  e = s32[64,2] parameter(1), sharding={devices=[4,1]<=[4]}
  p = s32[64,2] parameter(2), sharding={devices=[4,1]<=[4]}
  ROOT i = f32[8,4,16] custom-call(x, e, p), custom_call_target="moe_dispatch", api_version=API_VERSION_TYPED_FFI, sharding={devices=[4,1,1]<=[4]}
}
)",
                                     {});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(CountOpcode(**program, Opcode::kReduceScatter), 1) << LocalText(**program);
  EXPECT_EQ(CountOpcode(**program, Opcode::kAllGather), 0);
  EXPECT_EQ(CountOpcode(**program, Opcode::kAllReduce), 0);
}

TEST(MoeTargets, ExpertsOverOtherDevicesThanTokensNeedNoTokenOfOthers) {
  const auto program = PartitionText(R"(HloModule m, num_partitions=4

ENTRY main {
  x = f32[64,16] parameter(0)
  e = s32[64,2] parameter(1)
  p = s32[64,2] parameter(2)
  ROOT i = f32[8,4,16] custom-call(x, e, p), custom_call_target="moe_dispatch", api_version=API_VERSION_TYPED_FFI, sharding={devices=[4,1,1]<=[4]}
}
)",
                                     {});
  ASSERT_TRUE(program.ok()) << program.status();
  for (Opcode op : {Opcode::kReduceScatter, Opcode::kAllGather, Opcode::kAllReduce}) {
    EXPECT_EQ(CountOpcode(**program, op), 0) << LocalText(**program);
  }
}

}  // namespace
}  // namespace shardcall
