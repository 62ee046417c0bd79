// SPDX-License-Identifier: Apache-2.0
// Collectives of what a loop does not change run once, before the loop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/substitute.h"
#include "tests/partitioner/pass/pass_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string After(const std::string& text, int64_t room = 1 << 20) {
  return TextAfter(*MakeLoopInvariants([room](const Module&) { return room; }), text);
}

// A computation of the text, from its name to its bracket.
std::string Part(const std::string& text, const std::string& name) {
  const size_t begin = text.find("\n%" + name + " ");
  if (begin == std::string::npos) return "no " + name + " in " + text;
  return text.substr(begin, text.find("\n}", begin) - begin);
}

constexpr char kSum[] = R"(
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
)";

// A loop over i, w and x; `rest` of its body makes y of them, which is the next x.
std::string Loop(const std::string& rest, const std::string& next_w = "w", int trips = 10,
                 const std::string& last = "ROOT z = f32[8] get-tuple-element(l), index=2") {
  return absl::Substitute(R"_($0
body {
  p = (s32[], f32[2], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  w = f32[2] get-tuple-element(p), index=1
  x = f32[8] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
$1
  ROOT r = (s32[], f32[2], f32[8]) tuple(j, $2, y)
}
test {
  p = (s32[], f32[2], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant($3)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY main {
  w = f32[2] parameter(0)
  x = f32[8] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[2], f32[8]) tuple(zero, w, x)
  l = (s32[], f32[2], f32[8]) while(t), condition=test, body=body, frontend_attributes={shardcall.global_shape="(s32[], f32[8], f32[8])",shardcall.shards={{replicated}, {devices=[4]<=[4]}, {replicated}}}
  $4
}
)_",
                          kSum, rest, next_w, trips, last);
}

constexpr char kGathered[] = R"(
  g = f32[8] all-gather(w), channel_id=1, dimensions={0}, replica_groups=[1,4]<=[4], use_global_device_ids=true
  y = f32[8] add(x, g))";

TEST(LoopInvariants, AGatherLeavesTheLoop) {
  const std::string text = After(Loop(kGathered));
  EXPECT_THAT(Part(text, "body"), Not(HasSubstr("all-gather(")));
  EXPECT_THAT(text, HasSubstr("%g = f32[8]{0} all-gather(%w.1)"));
  EXPECT_THAT(text, HasSubstr("tuple(%zero, %w.1, %x.1, %g)"));
  // The body reads the carried value and passes it on; the condition takes it.
  EXPECT_THAT(Part(text, "body"), HasSubstr("get-tuple-element(%p), index=3"));
  EXPECT_THAT(Part(text, "test"), HasSubstr("(s32[], f32[2]{0}, f32[8]{0}, f32[8]{0}) parameter"));
  // What the program says of how its values are cut has it, too.
  EXPECT_THAT(text, HasSubstr(R"_(global_shape="(s32[], f32[8], f32[8], f32[8])")_"));
  EXPECT_THAT(text, HasSubstr("{devices=[4]<=[4]}, {replicated}, {manual}}"));
}

TEST(LoopInvariants, SoDoesWhatItIsMadeOf) {
  const std::string bf = R"(
bf {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT c = bf16[] add(a, b)
})";
  const std::string text = After(bf + Loop(R"(
  h = bf16[2] convert(w)
  g = bf16[8] all-gather(h), channel_id=1, dimensions={0}, replica_groups=[1,4]<=[4], use_global_device_ids=true
  s = bf16[8] all-reduce(g), channel_id=2, replica_groups=[1,4]<=[4], use_global_device_ids=true, to_apply=bf
  f = f32[8] convert(s)
  y = f32[8] add(x, f))"));
  const std::string body = Part(text, "body");
  EXPECT_THAT(body, Not(HasSubstr("all-")));
  EXPECT_THAT(body, Not(HasSubstr("bf16[8]{0} convert")));
  EXPECT_THAT(body, HasSubstr("%f = f32[8]{0} convert("));
  EXPECT_THAT(Part(text, "main"), HasSubstr("bf16[2]{0} convert(%w"));
  EXPECT_THAT(text, HasSubstr("(s32[], f32[2]{0}, f32[8]{0}, bf16[8]{0})"));  // the sum alone
}

TEST(LoopInvariants, WhatTheLoopChangesStays) {
  EXPECT_EQ(After(Loop(std::string("  v = f32[2] negate(w)") + kGathered, "v")), "");
  EXPECT_EQ(After(Loop(R"(
  y = f32[8] all-reduce(x), channel_id=1, replica_groups=[1,4]<=[4], use_global_device_ids=true, to_apply=add)")),
            "");
}

TEST(LoopInvariants, OneIterationGainsNothing) {
  EXPECT_EQ(After(Loop(kGathered, "w", 1)), "");
  EXPECT_EQ(After(Loop(kGathered, "w", 0)), "");
  EXPECT_NE(After(Loop(kGathered, "w", 2)), "");
}

TEST(LoopInvariants, OnlyAsMuchAsThereIsRoomFor) {
  EXPECT_NE(After(Loop(kGathered), 32), "");
  EXPECT_EQ(After(Loop(kGathered), 31), "");
}

TEST(LoopInvariants, AnOrderIsKept) {
  EXPECT_EQ(After(Loop(R"(
  z = f32[8] negate(x)
  g = f32[8] all-gather(w), channel_id=1, dimensions={0}, replica_groups=[1,4]<=[4], use_global_device_ids=true, control-predecessors={z}
  y = f32[8] add(z, g))")),
            "");
}

TEST(LoopInvariants, TheLoopsResultMayBeReadWhole) {
  const std::string text =
      After(Loop(kGathered, "w", 10, "ROOT c = (s32[], f32[2], f32[8]) copy(l)"));
  EXPECT_THAT(text, HasSubstr("ROOT %c.2 = (s32[], f32[2]{0}, f32[8]{0}) copy(%tuple.1)"));
}

// Out of both loops, one after the other.
TEST(LoopInvariants, AllLoopsAroundAreLeft) {
  const std::string text = After(std::string(kSum) + R"(
inner {
  p = (s32[], f32[2], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  w = f32[2] get-tuple-element(p), index=1
  x = f32[8] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  g = f32[8] all-gather(w), channel_id=1, dimensions={0}, replica_groups=[1,4]<=[4], use_global_device_ids=true
  y = f32[8] add(x, g)
  ROOT r = (s32[], f32[2], f32[8]) tuple(j, w, y)
}
test {
  p = (s32[], f32[2], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
outer {
  p = (s32[], f32[2], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  w = f32[2] get-tuple-element(p), index=1
  x = f32[8] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  zero = s32[] constant(0)
  t = (s32[], f32[2], f32[8]) tuple(zero, w, x)
  l = (s32[], f32[2], f32[8]) while(t), condition=test, body=inner
  y = f32[8] get-tuple-element(l), index=2
  ROOT r = (s32[], f32[2], f32[8]) tuple(j, w, y)
}
again {
  p = (s32[], f32[2], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY main {
  t = (s32[], f32[2], f32[8]) parameter(0)
  ROOT l = (s32[], f32[2], f32[8]) while(t), condition=again, body=outer
}
)");
  EXPECT_THAT(Part(text, "inner"), Not(HasSubstr("all-gather(")));
  EXPECT_THAT(Part(text, "outer"), Not(HasSubstr("all-gather(")));
  EXPECT_THAT(text, HasSubstr("all-gather("));
}

TEST(LoopInvariants, ABodyThatTwoLoopsShareIsLeftAsItIs) {
  std::string text =
      Loop(kGathered, "w", 10, R"(m = (s32[], f32[2], f32[8]) while(l), condition=test, body=body
  ROOT z = f32[8] get-tuple-element(m), index=2)");
  EXPECT_EQ(After(text), "");
}

}  // namespace
}  // namespace shardcall
