// SPDX-License-Identifier: Apache-2.0
// softmax_cross_entropy under every sharding of logits and labels, the vocabulary
// among them.
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

constexpr char kCall[] = "api_version=API_VERSION_TYPED_FFI";

// Rows A, vocabulary B; labels of 0 to 7, some beyond a small vocabulary.
const std::vector<Sizes> kSizes = {
    {{'A', 8}, {'B', 8}}, {{'A', 5}, {'B', 10}}, {{'A', 3}, {'B', 7}}, {{'A', 1}, {'B', 3}}};

std::string Text(const std::string& text) { return absl::StrReplaceAll(text, {{"TYPED", kCall}}); }

TEST(LossTargets, LossAndGradientAgreeWithOneDevice) {
  VerifyFamily({.text = Text(R"(
  x = f32[@A,@B] parameter(0)<0:2>
  l = s32[@A] parameter(1)<1:1>
  d = f32[@A] parameter(2)
  c = (f32[@A], f32[@A]) custom-call(x, l), custom_call_target="softmax_cross_entropy", TYPED
  loss = f32[@A] get-tuple-element(c), index=0
  lse = f32[@A] get-tuple-element(c), index=1
  g = f32[@A,@B] custom-call(d, x, l, lse), custom_call_target="softmax_cross_entropy_bwd", TYPED
  r = f32[@A,@B] copy(g)<2:2>
  ROOT t = (f32[@A], f32[@A,@B]) tuple(loss, r)
)"),
                .sizes = kSizes,
                .max_cases = 300,
                .no_fallback = true});
}

TEST(LossTargets, LeadingDimensionsAreShardedToo) {
  VerifyFamily({.text = Text(R"(
  x = bf16[@A,2,@B] parameter(0)<0:3>
  l = s64[@A,2] parameter(1)
  ROOT r = f32[@A,2] custom-call(x, l), custom_call_target="softmax_cross_entropy", TYPED
)"),
                .sizes = kSizes,
                .max_cases = 150,
                .no_fallback = true});
}

// No logit is near another, so that all but the largest one's exponentials are 0
// and the loss is a difference of logits, exactly.
TEST(LossTargets, IsBitForBitWhereOneLogitOutweighsTheOthers) {
  for (const char* sharding : {"devices=[1,4]<=[4]", "devices=[2,2]<=[4]", "devices=[4,1]<=[4]"}) {
    const auto result = VerifyText(absl::StrReplaceAll(Text(R"(HloModule m, num_partitions=4

ENTRY main {
  x = f32[6,10] parameter(0), sharding={SHARDING}
  l = s32[6] parameter(1)
  k = f32[] constant(16777216)
  s = f32[6,10] broadcast(k), dimensions={}
  m = f32[6,10] multiply(x, s)
  i = f32[6,10] iota(), iota_dimension=1
  step = f32[] constant(131072)
  shift = f32[6,10] broadcast(step), dimensions={}
  ramp = f32[6,10] multiply(i, shift)
  y = f32[6,10] add(m, ramp)
  ROOT r = f32[6] custom-call(y, l), custom_call_target="softmax_cross_entropy", TYPED
}
)"),
                                                       {{"SHARDING", sharding}}),
                                   {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->status, VerifyResult::Status::kOk) << result->reason;
    EXPECT_TRUE(result->outputs[0].bitwise) << sharding;
    EXPECT_GT(result->outputs[0].largest, 1e5);
  }
}

TEST(LossTargets, LogitsAreNotGathered) {
  const auto program = PartitionText(Text(R"(HloModule m, num_partitions=4

ENTRY main {
  x = f32[64,1024] parameter(0), sharding={devices=[1,4]<=[4]}
  l = s32[64] parameter(1)
  ROOT r = f32[64] custom-call(x, l), custom_call_target="softmax_cross_entropy", TYPED
}
)"),
                                     {});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(CountOpcode(**program, Opcode::kAllGather), 0);
  EXPECT_EQ(CountOpcode(**program, Opcode::kAllReduce), 3);
}

TEST(LossTargets, ACallThatNoSignatureFitsIsAnError) {
  EXPECT_THAT(PartitionText(Text(R"(HloModule m, num_partitions=4

ENTRY main {
  x = f32[64,16] parameter(0), sharding={devices=[1,4]<=[4]}
  l = s32[32] parameter(1)
  ROOT r = f32[64] custom-call(x, l), custom_call_target="softmax_cross_entropy", TYPED
}
)"),
                            {}),
              Fails("E111", "softmax_cross_entropy"));
}

}  // namespace
}  // namespace shardcall
