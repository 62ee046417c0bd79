// SPDX-License-Identifier: Apache-2.0
// Rules and kernels of the shipped targets are joined by name alone.
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shardcall/kernels/builtin.h"
#include "shardcall/partitioner/custom_call/registry.h"

namespace shardcall {
namespace {

TEST(ShippedTargets, HaveARuleAndAKernelEach) {
  TargetRegistry targets;
  HandlerRegistry handlers;
  ASSERT_TRUE(RegisterBuiltinTargets(targets).ok());
  ASSERT_TRUE(RegisterBuiltinHandlers(handlers).ok());
  std::set<std::string> rules, kernels;
  for (const TargetRule* rule : targets.List()) {
    rules.insert(rule->target);
    EXPECT_EQ(rule->source, "built in") << rule->target;
  }
  for (const HandlerEntry* entry : handlers.List()) kernels.insert(entry->target);
  EXPECT_THAT(rules, testing::ContainerEq(kernels));
  EXPECT_GT(rules.size(), 60);
}

}  // namespace
}  // namespace shardcall
