// SPDX-License-Identifier: Apache-2.0
// topk with sharded lines and parts of lines: bit for bit one device's values and
// indices, ties included.
#include <gtest/gtest.h>

#include "tests/support/program_family.h"

namespace shardcall {
namespace {

// Lines A of length B; small numbers, so that most elements have equals.
const std::vector<Sizes> kSizes = {
    {{'A', 8}, {'B', 8}}, {{'A', 5}, {'B', 10}}, {{'A', 3}, {'B', 7}}, {{'A', 1}, {'B', 3}}};

void VerifyTopK(const std::string& type, const std::string& config) {
  VerifyFamily(
      {.text =
           R"(
  x = )" + type +
           R"([@A,@B] parameter(0)<0:2>
  t = ()" + type +
           R"([@A,3], s32[@A,3]) custom-call(x), custom_call_target="topk", api_version=API_VERSION_TYPED_FFI, backend_config=)" +
           config + R"(
  v = )" + type +
           R"([@A,3] get-tuple-element(t), index=0
  i = s32[@A,3] get-tuple-element(t), index=1
  c = s32[@A,3] copy(i)<1:2>
  ROOT r = ()" +
           type + R"([@A,3], s32[@A,3]) tuple(v, c)
)",
       .sizes = kSizes,
       .max_cases = 150});
}

TEST(TopKTargets, FloatsAgreeWithOneDevice) { VerifyTopK("f32", "{largest = true}"); }
TEST(TopKTargets, SmallestFloatsAgreeWithOneDevice) { VerifyTopK("bf16", "{largest = false}"); }
TEST(TopKTargets, IntegersAgreeWithOneDevice) { VerifyTopK("s32", "{}"); }
TEST(TopKTargets, UnsignedIntegersAgreeWithOneDevice) { VerifyTopK("u8", "{largest = false}"); }

TEST(TopKTargets, LabelsAgreeWithOneDevice) {
  VerifyFamily({.text = R"(
  x = f32[2,@A,@B] parameter(0)<0:3>
  l = s32[2,@A,@B] parameter(1)<1:3>
  ROOT t = (f32[2,@A,2], s32[2,@A,2]) custom-call(x, l), custom_call_target="topk", api_version=API_VERSION_TYPED_FFI
)",
                .sizes = kSizes,
                .max_cases = 150,
                .no_fallback = true});
}

// Padding must lose against the last of all elements.
TEST(TopKTargets, NothingStandsBehindPadding) {
  for (const char* sharding : {"devices=[1,4]<=[4]", "devices=[2,2]<=[4]"}) {
    const std::string text = std::string(R"(HloModule m, num_partitions=4

ENTRY main {
  x = f32[2,5] parameter(0), sharding={)") +
                             sharding + R"(}
  zero = f32[] constant(0)
  zeros = f32[2,5] broadcast(zero), dimensions={}
  even = pred[2,5] compare(x, zeros), direction=GE
  low = f32[] constant(-inf)
  lows = f32[2,5] broadcast(low), dimensions={}
  y = f32[2,5] select(even, x, lows)
  ROOT t = (f32[2,5], s32[2,5]) custom-call(y), custom_call_target="topk", api_version=API_VERSION_TYPED_FFI
}
)";
    EXPECT_EQ(WhyNotEqual(text, {}), "") << sharding;
  }
}

TEST(TopKTargets, ALineIsNotGathered) {
  const auto program = PartitionText(R"(HloModule m, num_partitions=4

ENTRY main {
  x = f32[8,4096] parameter(0), sharding={devices=[1,4]<=[4]}
  ROOT t = (f32[8,2], s32[8,2]) custom-call(x), custom_call_target="topk", api_version=API_VERSION_TYPED_FFI
}
)",
                                     {});
  ASSERT_TRUE(program.ok()) << program.status();
  const std::string text = LocalText(**program);
  EXPECT_EQ(CountOpcode(**program, Opcode::kAllGather), 2);
  EXPECT_NE(text.find("f32[8,8]{1,0} all-gather"), std::string::npos) << text;
}

}  // namespace
}  // namespace shardcall
