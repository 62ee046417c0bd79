// SPDX-License-Identifier: Apache-2.0
// HLO text that partition callbacks put into the local program.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"
#include "tests/partitioner/spmd/callback_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

TEST(CallbackPrograms, LocalTextWithCollectivesAndCallees) {
  constexpr char kLocal[] = R"(HloModule local

plus {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b)
}

ENTRY e {
  x = s32[2,12] parameter(0)
  id = u32[] partition-id()
  whole = s32[8,12] all-gather(x), channel_id=1, dimensions={0}, replica_groups={{0,1,2,3}}, use_global_device_ids=true
  zero = s32[] constant(0)
  row = s32[] convert(id)
  two = s32[] constant(2)
  start = s32[] multiply(row, two)
  mine = s32[2,12] dynamic-slice(whole, start, zero), dynamic_slice_sizes={2,12}
  total = s32[12] reduce(whole, zero), dimensions={0}, to_apply=plus
  ROOT out = (s32[2,12], s32[12]) tuple(mine, total)
}
)";
  CallbackRig rig([&](PartitionContext& c) -> absl::Status {
    const Sharding* rows = ShardingOf(c, R"([{"x0"}, {}])");
    SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, c.Operand(0, rows));
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<LocalValue> out, c.AddProgram(kLocal, {x}));
    EXPECT_EQ(out.size(), 2);
    return c.SetResult(0, out[0], rows);
  });
  EXPECT_EQ(WhyNotEqual(kProgram, rig.options), "");
  const auto p = PartitionText(kProgram, rig.options);
  ASSERT_TRUE(p.ok()) << p.status();
  ASSERT_GE((*p)->local.collectives.size(), 1);
  EXPECT_EQ((*p)->local.collectives[0].group_size, 4);
  EXPECT_EQ((*p)->local.collectives[0].cause.kind, CollectiveCause::Kind::kCallback);
}

// As in a whole program, a target's shape function or rule says what a call gives.
TEST(CallbackPrograms, CallsWithoutAShapeHaveThatOfTheirTarget) {
  const auto with = [](const char* call) {
    CallbackRig rig([call](PartitionContext& c) -> absl::Status {
      const Sharding* rows = ShardingOf(c, R"([{"x0"}, {}])");
      SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, c.Operand(0, rows));
      SHARDCALL_ASSIGN_OR_RETURN(
          const std::vector<LocalValue> out,
          c.AddProgram(absl::StrCat("HloModule m\n\nENTRY e {\n  x = s32[2,12] parameter(0)\n"
                                    "  ROOT y = ",
                                    call, "\n}\n"),
                       {x}));
      return c.SetResult(0, out[0], rows);
    });
    EXPECT_TRUE(rig.targets.RegisterRule("by_rule", {.rule = "i j -> i j"}).ok());
    EXPECT_TRUE(rig.targets.RegisterRule("by_function", {.rule = "i j -> i j"}).ok());
    EXPECT_TRUE(rig.targets
                    .RegisterShapeInference("by_function",
                                            [](const ShapeRequest& call) {
                                              return absl::StatusOr<const Shape*>(call.operands[0]);
                                            })
                    .ok());
    HandlerEntry entry;
    entry.host = Same;
    for (const char* target : {"by_rule", "by_function"}) {
      entry.target = target;
      EXPECT_TRUE(rig.handlers.Register(entry).ok());
    }
    return WhyNotEqual(kProgram, rig.options);
  };
  EXPECT_EQ(with("custom-call(x), custom_call_target=\"by_rule\""), "");
  EXPECT_EQ(with("custom-call(x), custom_call_target=\"by_function\""), "");
  EXPECT_EQ(with("s32[2,12] custom-call(x), custom_call_target=\"by_function\""), "");
  EXPECT_THAT(with("custom-call(x), custom_call_target=\"unheard_of\""), HasSubstr("E112"));
  EXPECT_THAT(with("s32[2,13] custom-call(x), custom_call_target=\"by_function\""),
              HasSubstr("E023"));
}

TEST(CallbackPrograms, TextThatDoesNotFitIsRefused) {
  auto with = [](std::string hlo) {
    return Refused([hlo](PartitionContext& c) -> absl::Status {
      SHARDCALL_ASSIGN_OR_RETURN(LocalValue x, c.Operand(0, c.call().Replicated(2)));
      SHARDCALL_ASSIGN_OR_RETURN(const auto out, c.AddProgram(hlo, {x}));
      return c.SetResult(0, out[0], c.call().Replicated(2));
    });
  };
  EXPECT_THAT(with("HloModule m\n\nENTRY e {\n"), Fails("E002", "program of same"));
  EXPECT_THAT(with("HloModule m\n\nENTRY e {\n  ROOT x = f32[8,12] parameter(0)\n}\n"),
              Fails("E021", "s32[8,12]"));
  EXPECT_THAT(with("HloModule m\n\nENTRY e {\n  ROOT x = s32[8,12] constant({...})\n}\n"),
              Fails("E021", "expected parameters s32[8,12], found parameters"));
  EXPECT_THAT(with("HloModule m, num_partitions=8\n\nENTRY e {\n"
                   "  ROOT x = s32[8,12] parameter(0)\n}\n"),
              Fails("E120", "another number of devices"));
  EXPECT_THAT(with("HloModule m\n\nENTRY e {\n  x = s32[8,12] parameter(0)\n  ROOT y = s32[16,12] "
                   "all-gather(x), channel_id=1, dimensions={0}, replica_groups={{0,7}}, "
                   "use_global_device_ids=true\n}\n"),
              Fails("E025", "program of same"));
}

}  // namespace
}  // namespace shardcall
