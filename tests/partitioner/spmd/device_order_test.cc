// SPDX-License-Identifier: Apache-2.0
// Programs with two device orders: ops run on shards of either, and values pass from
// one to the other.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/program_family.h"
#include "tests/support/test_targets.h"

namespace shardcall {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// ROWS and COLUMNS are cuts over the devices in another order than the argument of
// `first`, which makes the program's own mesh.
std::string Program(const std::string& body) {
  return absl::StrReplaceAll(absl::StrCat(R"(HloModule m, num_partitions=4
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY main {
  first = f32[8,8] parameter(0), sharding={devices=[2,2]<=[4]}
  zero = f32[] constant(0)
)",
                                          body, "\n}"),
                             {{"ROWS", "sharding={devices=[4,1]0,3,1,2}"},
                              {"COLUMNS", "sharding={devices=[1,4]0,3,1,2}"},
                              {"LIST", "sharding={devices=[4]0,3,1,2}"}});
}

TextOptions WithTestTargets() {
  TextOptions options;
  options.targets = &TestTargets();
  options.handlers = &TestHandlers();
  return options;
}

struct Case {
  const char* body;
  int collectives;  // -1: not counted
};

constexpr Case kCases[] = {
    {R"(
  x = f32[8,8] parameter(1), ROWS
  y = f32[8,8] parameter(2), ROWS
  a = f32[8,8] add(x, y)
  m = f32[8,8] multiply(a, x)
  ROOT t = (f32[8,8], f32[8,8]) tuple(m, first), sharding={{devices=[4,1]0,3,1,2}, {devices=[2,2]<=[4]}}
)",
     0},
    {R"(
  x = f32[8,6] parameter(1), ROWS
  w = f32[6,5] parameter(2)
  ROOT d = f32[8,5] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, ROWS
)",
     0},
    {R"(
  x = f32[8,6] parameter(1), COLUMNS
  w = f32[6,5] parameter(2), ROWS
  ROOT d = f32[8,5] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={replicated}
)",
     1},
    {R"(
  x = f32[8,6] parameter(1), COLUMNS
  start = f32[] parameter(2)
  ROOT s = f32[8] reduce(x, start), dimensions={1}, to_apply=sum
)",
     1},
    {R"(
  x = f32[7,8] parameter(1), ROWS
  b = f32[7,8] broadcast(zero), dimensions={}
  c = f32[7,8] maximum(x, b)
  ROOT t = f32[8,7] transpose(c), dimensions={1,0}, COLUMNS
)",
     0},
    {R"(
  x = f32[10,4] parameter(1), ROWS
  s = f32[7,4] slice(x), slice={[2:9], [0:4]}
  p = f32[9,4] pad(s, zero), padding=1_1x0_0
  r = f32[9,4] reverse(p), dimensions={0}
  ROOT c = f32[19,4] concatenate(r, x), dimensions={0}, ROWS
)",
     -1},
    {R"(
  x = f32[8,4] parameter(1), ROWS
  i = s32[5] parameter(2)
  ROOT g = f32[5,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
)",
     -1},
    {R"(
  x = f32[8,4] parameter(1), ROWS
  i = s32[5,1] parameter(2)
  u = f32[5,4] parameter(3)
  ROOT s = f32[8,4] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum, ROWS
)",
     -1},
    {R"(
  n = s32[9] iota(), iota_dimension=0, LIST
  f = f32[9] convert(n)
  ROOT r = f32[9] negate(f), LIST
)",
     -1},
    {R"(
  x = f32[8,8] parameter(1), COLUMNS
  ROOT s = f32[8,8] sort(x), dimensions={1}, to_apply=less, COLUMNS
)",
     -1},
    {R"(
  x = s32[8,6] parameter(1), ROWS
  s = s32[8] custom-call(x), custom_call_target="test_sum"
  ROOT r = s32[8] negate(s), LIST
)",
     0},
    {R"(
  x = s32[5,6] parameter(1), COLUMNS
  s = s32[5] custom-call(x), custom_call_target="test_sum"
  w = s32[5,6] custom-call(x), custom_call_target="test_twice"
  ROOT t = (s32[5], s32[5,6]) tuple(s, w)
)",
     -1},
    {R"(
  x = f32[8,8] parameter(1), ROWS
  a = f32[8,8] add(x, first)
  b = f32[8,8] subtract(first, x)
  ROOT t = (f32[8,8], f32[8,8]) tuple(a, b), sharding={{devices=[4,1]0,3,1,2}, {devices=[2,2]<=[4]}}
)",
     -1},
};

TEST(DeviceOrder, OpsRunOnShardsOfAnotherOrder) {
  for (const Case& c : kCases) {
    const std::string text = Program(c.body);
    EXPECT_EQ(WhyNotEqual(text, WithTestTargets()), "") << text;
    if (c.collectives < 0) continue;
    const auto p = PartitionText(text, WithTestTargets());
    ASSERT_TRUE(p.ok()) << p.status();
    EXPECT_THAT((*p)->local.collectives, SizeIs(c.collectives)) << LocalText(**p);
    EXPECT_THAT((*p)->plan.gathers, IsEmpty()) << text;
    EXPECT_THAT((*p)->plan.fallbacks, IsEmpty()) << text;
  }
}

// Callbacks know the program's own order alone: the call is right, and the report says
// what that costs.
TEST(DeviceOrder, CallbacksSeeAnotherOrderWholeAndTheReportSaysSo) {
  const std::string text = Program(R"(
  x = f32[8,8] parameter(1), ROWS
  a = f32[8,8] custom-call(x), custom_call_target="test_twice", ROWS
  b = f32[8,8] custom-call(first), custom_call_target="test_twice", sharding={devices=[2,2]<=[4]}
  ROOT t = (f32[8,8], f32[8,8]) tuple(a, b), sharding={{devices=[4,1]0,3,1,2}, {devices=[2,2]<=[4]}}
)");
  EXPECT_EQ(WhyNotEqual(text, WithTestTargets()), "") << text;
  const auto p = PartitionText(text, WithTestTargets());
  ASSERT_TRUE(p.ok()) << p.status();
  const Module& module = (*p)->global->program.module;
  std::vector<std::string> found;
  for (const auto& [id, gather] : (*p)->plan.gathers) {
    found.push_back(
        absl::StrCat(module.instr(id).name, " ", GatherKindName(gather.kind), " ", gather.bytes));
  }
  // Of 64 numbers each device sends the 16 that it has to three others.
  EXPECT_THAT(found, testing::ElementsAre("a no strategy 192", "a whole 0")) << LocalText(**p);
}

}  // namespace
}  // namespace shardcall
