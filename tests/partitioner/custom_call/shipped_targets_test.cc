// SPDX-License-Identifier: Apache-2.0
// Rules and kernels of the shipped targets are joined by name alone.
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/custom_call/registry.h"
#include "shardcall/partitioner/custom_call/targets/jaxlib_targets.h"

namespace shardcall {
namespace {

TEST(ShippedTargets, HaveARuleAndAKernelEach) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  ASSERT_TRUE(RegisterBuiltinTargets(targets).ok());
  ASSERT_TRUE(RegisterBuiltinHandlers(handlers).ok());
  std::set<std::string> rules, kernels;
  for (const TargetRule* rule : targets.List()) {
    if (rule->source == "jaxlib") continue;  // whose kernels are there
    rules.insert(rule->target);
    EXPECT_EQ(rule->source, "built in") << rule->target;
  }
  for (const HandlerEntry* entry : handlers.List()) kernels.insert(entry->target);
  EXPECT_THAT(rules, testing::ContainerEq(kernels));
  EXPECT_GT(rules.size(), 60);
}

// Each has a rule, or a word on why there is none.
TEST(ShippedTargets, ThoseOfJaxlibAreRegisteredAsTheirTableSays) {
  TargetRegistry targets;
  ASSERT_TRUE(RegisterBuiltinTargets(targets).ok());
  std::set<std::string> names;
  for (const JaxlibTarget& row : JaxlibTargets()) {
    const bool of_call = row.how == JaxlibTarget::How::kOfCall;
    for (const std::string& name : JaxlibTargetNames(row)) {
      EXPECT_TRUE(names.insert(name).second) << name;
      const TargetRule* const rule = targets.Find(name, "");
      EXPECT_EQ(rule == nullptr, of_call) << name;
      if (row.how == JaxlibTarget::How::kReplicated) EXPECT_EQ(rule->batch_dims, 0) << name;
    }
    const bool reason = of_call || row.how == JaxlibTarget::How::kReplicated;
    EXPECT_EQ(testing::Value(JaxlibTargetText(row), testing::HasSubstr(": ")), reason) << row.name;
  }
  EXPECT_EQ(names.count("hipsolver_getrf_ffi"), 1u);
}

TEST(ShippedTargets, ThoseOfJaxlibGiveWayToARegistrationBeforeOrAfter) {
  const RuleText text = {.rule = "... m n -> ... m n, ...", .need_replication = {"m", "n"}};
  for (bool before : {false, true}) {
    TargetRegistry targets;
    if (before) ASSERT_TRUE(targets.RegisterRule("cusolver_potrf_ffi", text, "", "mine").ok());
    ASSERT_TRUE(RegisterBuiltinTargets(targets).ok());
    if (!before) ASSERT_TRUE(targets.RegisterRule("cusolver_potrf_ffi", text, "", "mine").ok());
    EXPECT_EQ(targets.Find("cusolver_potrf_ffi", "")->source, "mine");
    EXPECT_EQ(targets.RegisterBatchPartitionable("cusolver_potrf_ffi", 1, "", "other").code(),
              absl::StatusCode::kAlreadyExists)
        << "of two that somebody says, one has to go";
  }
}

}  // namespace
}  // namespace shardcall
