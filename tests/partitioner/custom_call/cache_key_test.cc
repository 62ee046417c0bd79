// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/custom_call/cache_key.h"

#include <set>

#include "gtest/gtest.h"

namespace shardcall {
namespace {

class CacheKeyTest : public ::testing::Test {
 protected:
  static std::string Key(const TargetRegistry& r, absl::string_view config = "",
                         std::vector<int64_t> mesh = {4, 2}, bool reversed = false,
                         absl::string_view attribute = "") {
    Context context;  // one of its own: keys may not depend on where values lie
    DeviceOrder order = DeviceOrder::Identity(mesh[0] * mesh[1]);
    if (reversed) order = *DeviceOrder::Iota({mesh[0], mesh[1]}, {1, 0});
    const BaseMesh* base = InternBaseMesh(context, mesh, order);
    const FrontendAttributes* frontend = InternFrontendAttributes(
        context, {{"kind", attribute}, {"xla.sdy.sharding", "#sdy.sharding<@m, [{}]>"}});
    return RuleCacheKey(*r.Find("t", ""), config, attribute.empty() ? nullptr : frontend, *base);
  }
  static TargetRegistry Callbacks(int version) {
    TargetRegistry r;
    PartitionerCallbacks c;
    c.version = version;
    EXPECT_TRUE(r.RegisterCustomCallPartitioner("t", c).ok());
    return r;
  }
  static TargetRegistry Rule(const RuleText& text) {
    TargetRegistry r;
    EXPECT_TRUE(r.RegisterRule("t", text).ok());
    return r;
  }
};

// What other processes have computed, and later ones will.
TEST_F(CacheKeyTest, IsTheSameInEveryProcess) {
  EXPECT_EQ(Key(Callbacks(1), "{k = 3 : i64}"), "ed79df678f5797edafa84527c3c533c1");
  EXPECT_EQ(Key(Rule({.rule = "a b -> a", .reduction = {{"b", PartialOp::kSum}}})),
            "23de2ded1e2cecae0454c8ff50a2bbda");
}

TEST_F(CacheKeyTest, ChangesWithEverythingThatChangesTheProgram) {
  const RuleText rule{.rule = "a b -> a", .reduction = {{"b", PartialOp::kSum}}};
  RuleText max = rule, pad = rule, near_pad = rule, blocked = rule;
  max.reduction[0].second = PartialOp::kMax;
  pad.pad = {{"b", 1}};
  near_pad.pad = {{"b", 1 + 1e-9}};
  blocked.blocked = {"a"};
  const std::vector<std::string> keys = {
      Key(Callbacks(1)),
      Key(Callbacks(2)),
      Key(Callbacks(1), "x"),
      Key(Callbacks(1), "", {2, 4}),
      Key(Callbacks(1), "", {4, 2}, true),
      Key(Callbacks(1), "", {4, 2}, false, "a"),
      Key(Callbacks(1), "", {4, 2}, false, "b"),
      Key(Rule(rule)),
      Key(Rule(max)),
      Key(Rule(pad)),
      Key(Rule(near_pad)),
      Key(Rule(blocked)),
  };
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), keys.size());
}

}  // namespace
}  // namespace shardcall
