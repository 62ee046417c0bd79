// SPDX-License-Identifier: Apache-2.0
// What the text of a per-device program says of how its values are cut.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string LocalTextOf(const std::string& text) {
  const auto program = PartitionText(text, {});
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? LocalText(**program) : "";
}

constexpr char kLoop[] = R"(HloModule loop, num_partitions=4, frontend_attributes={kind="test"}
below {
  c = (s32[], f32[10,6], f32[4]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(3)
  ROOT more = pred[] compare(i, n), direction=LT
}
next {
  c = (s32[], f32[10,6], f32[4]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  x = f32[10,6] get-tuple-element(c), index=1
  y = f32[4] get-tuple-element(c), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  z = f32[10,6] add(x, x)
  ROOT t = (s32[], f32[10,6], f32[4]) tuple(j, z, y)
}
ENTRY main {
  x = f32[10,6] parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}, frontend_attributes={name="x"}
  y = f32[4] parameter(1), sharding={replicated}
  zero = s32[] constant(0)
  t = (s32[], f32[10,6], f32[4]) tuple(zero, x, y)
  w = (s32[], f32[10,6], f32[4]) while(t), condition=below, body=next
  r = f32[10,6] get-tuple-element(w), index=1
  s = f32[4] get-tuple-element(w), index=2
  ROOT out = (f32[10,6], f32[4]) tuple(r, s), sharding={{devices=[4,1]<=[4]}, {replicated}}
})";

TEST(StatedShardings, ParametersLoopsAndTheResultSayHowTheyAreCut) {
  const std::string local = LocalTextOf(kLoop);
  EXPECT_THAT(local, HasSubstr("frontend_attributes={kind=\"test\","
                               "shardcall.result_global_shape=\"(f32[10,6], f32[4])\","
                               "shardcall.result_shards={{devices=[4,1]<=[4]}, {replicated}}}"));
  EXPECT_THAT(local, HasSubstr("f32[5,6]{1,0} parameter(0), frontend_attributes={name=\"x\","
                               "shardcall.global_shape=\"f32[10,6]\",shardcall.shards="
                               "{devices=[2,1,2]<=[4] last_tile_dim_replicate}}"));
  EXPECT_THAT(local,
              HasSubstr("parameter(1), frontend_attributes={shardcall.global_shape=\"f32[4]\","
                        "shardcall.shards={replicated}}"));
  EXPECT_THAT(local, HasSubstr("frontend_attributes={shardcall.global_shape=\"(s32[], f32[10,6], "
                               "f32[4])\",shardcall.shards={{replicated}, {devices=[4,1]<=[4]}, "
                               "{replicated}}}"));
}

TEST(StatedShardings, AreThoseOfTheTextThatSaysThemWhenItIsPartitionedAgain) {
  // Over the same devices, each of which has the whole of what was a shard.
  const std::string again = LocalTextOf(LocalTextOf(kLoop));
  EXPECT_THAT(again, HasSubstr("shardcall.global_shape=\"f32[5,6]\""));
  EXPECT_THAT(again, Not(HasSubstr("shardcall.global_shape=\"f32[10,6]\"")));
}

TEST(StatedShardings, OneDeviceSaysNothing) {
  EXPECT_THAT(LocalTextOf("HloModule m, num_partitions=1\n\nENTRY main {\n  x = f32[4] "
                          "parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n"),
              Not(HasSubstr("frontend_attributes")));
}

}  // namespace
}  // namespace shardcall
