// SPDX-License-Identifier: Apache-2.0
// Custom calls at the three levels, under every sharding, run by test handlers.
#include <gtest/gtest.h>

#include "tests/support/program_family.h"
#include "tests/support/test_targets.h"

namespace shardcall {
namespace {

// What is wrong is said of the shape, or of the registration, where that is at fault.
TEST(CustomCalls, AWrongWrittenShapeIsSaidBeforeWhatItsRuleMakesOfIt) {
  TargetRegistry targets;
  ASSERT_TRUE(RegisterBuiltinTargets(targets).ok());
  ASSERT_TRUE(targets.RegisterBatchPartitionable("deep", 5).ok());
  TextOptions options;
  options.targets = &targets;
  const auto refused = [&](const std::string& call) {
    return PartitionText("HloModule m, num_partitions=2\nENTRY e {\n"
                         "x = f32[8,4] parameter(0), sharding={devices=[2,1]<=[2]}\nROOT " + call +
                             "\n}",
                         options).status();
  };
  const absl::Status shape = refused("c = f32[8,5] custom-call(x), custom_call_target=\"custom_relu\"");
  EXPECT_THAT(shape, Fails("E023", "expected f32[8,4], found f32[8,5]"));
  EXPECT_THAT(shape, Fails("E023", "the call of \"custom_relu\", %c"));
  EXPECT_THAT(refused("c = f32[8,4] custom-call(x), custom_call_target=\"deep\""),
              Fails("E111", "declare fewer batch dimensions"));
}

const std::vector<Sizes> kSizes = {{{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 7}},
                                   {{'A', 3}, {'B', 5}}, {{'A', 1}, {'B', 8}}};

TextOptions WithTestTargets() {
  TextOptions options;
  options.targets = &TestTargets();
  options.handlers = &TestHandlers();
  return options;
}

TEST(CustomCall, BatchDimsStayShardedAndTheOthersAreGathered) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  n = s32[@A,@B] custom-call(x), custom_call_target="test_negate"
  ROOT r = s32[@A,@B] custom-call(n), custom_call_target="test_row_scan"<1:2>
)",
                .sizes = kSizes,
                .max_cases = 400,
                .options = WithTestTargets(),
                .no_fallback = true});
}

TEST(CustomCall, RulesThatReduceGiveSumsOverShards) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  s = s32[@A] custom-call(x), custom_call_target="test_sum"<1:1>
  b = s32[@A,@B] broadcast(s), dimensions={0}
  ROOT r = s32[@A,@B] add(b, x)<2:2>
)",
                .sizes = kSizes,
                .max_cases = 400,
                .options = WithTestTargets(),
                .no_fallback = true});
}

TEST(CustomCall, FactorsSharedByOperands) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  g = f32[@B] parameter(1)<1:1>
  ROOT r = f32[@A,@B] custom-call(x, g), custom_call_target="test_scale"<2:2>
)",
                .sizes = kSizes,
                .max_cases = 400,
                .options = WithTestTargets(),
                .no_fallback = true});
}

TEST(CustomCall, CallbacksChooseTheirShardings) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  t = s32[@A,@B] custom-call(x), custom_call_target="test_twice"<1:2>
  s = s32[@B] custom-call(t), custom_call_target="test_total"<2:1>
  ROOT r = (s32[@A,@B], s32[@B]) tuple(t, s)
)",
                .sizes = kSizes,
                .max_cases = 400,
                .options = WithTestTargets()});
}

TEST(CustomCall, UnregisteredTargetsMayBeReplicatedOnRequest) {
  TextOptions options = WithTestTargets();
  static TargetRegistry* const kNone = new TargetRegistry;
  options.targets = kNone;
  options.allow_replicate = {"test_row_scan"};
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  ROOT r = s32[@A,@B] custom-call(x), custom_call_target="test_row_scan"<1:2>
)",
                .sizes = kSizes,
                .max_cases = 200,
                .options = options});
}

TEST(CustomCall, RulesThatTheCallItselfCarries) {
  TextOptions options = WithTestTargets();
  static TargetRegistry* const kNone = new TargetRegistry;
  options.targets = kNone;
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  n = s32[@A,@B] custom-call(x), custom_call_target="test_negate", frontend_attributes={xla.sdy.sharding_rule="#sdy.op_sharding_rule<([i, j])->([i, j]) {i=@A, j=@B}>"}
  ROOT r = s32[@A,@B] add(n, x)<1:2>
)",
                .sizes = kSizes,
                .max_cases = 100,
                .options = options,
                .no_fallback = true});
}

TEST(CustomCall, ShippedKernelsAgreeWithOneDevice) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  w = f32[@B] parameter(1)<1:1>
  n = f32[@A,@B] custom-call(x, w), custom_call_target="rms_norm", api_version=API_VERSION_TYPED_FFI, backend_config={eps = 1.000000e-05 : f32}
  ROOT r = f32[@A,@B] add(n, x)<2:2>
)",
                .sizes = kSizes,
                .max_cases = 200});
}

}  // namespace
}  // namespace shardcall
