// SPDX-License-Identifier: Apache-2.0
// Values whose size is known only at run time: every device holds them whole.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

std::string Program(int size, const std::string& operand, const std::string& root) {
  return absl::StrCat(R"(HloModule m, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[8,6] parameter(0), sharding=)",
                      operand, R"(
  n = s32[] constant()",
                      size, R"()
  z = f32[] constant(0)
  d = f32[8,<=6] set-dimension-size(x, n), dimensions={1}
  m = f32[8,<=6] negate(d)
)",
                      root, "}\n");
}

TEST(DynamicSizes, OpsOnThemAreRightWhateverTheShardingsAround) {
  for (int size : {0, 1, 4, 6}) {
    for (const char* sharding :
         {"{devices=[2,2]<=[4]}", "{devices=[4,1]<=[4]}", "{devices=[1,4]<=[4]}", "{replicated}"}) {
      SCOPED_TRACE(absl::StrCat(size, " ", sharding));
      EXPECT_EQ(WhyNotEqual(Program(size, sharding, R"(
  s = f32[8] reduce(m, z), dimensions={1}, to_apply=add, sharding={devices=[4]<=[4]}
  k = s32[] get-dimension-size(m), dimensions={1}
  ROOT r = (f32[8], s32[]) tuple(s, k)
)"),
                            {}),
                "");
      EXPECT_EQ(WhyNotEqual(Program(size, sharding, "  ROOT r = f32[8,<=6] add(m, d)\n"), {}), "");
    }
  }
}

TEST(DynamicSizes, LoopsCarryThem) {
  EXPECT_EQ(WhyNotEqual(R"(HloModule m, num_partitions=2

cond {
  c = (s32[], f32[<=6,4]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  k = s32[] constant(3)
  ROOT r = pred[] compare(i, k), direction=LT
}

body {
  c = (s32[], f32[<=6,4]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  x = f32[<=6,4] get-tuple-element(c), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[<=6,4] add(x, x)
  ROOT r = (s32[], f32[<=6,4]) tuple(j, y)
}

ENTRY main {
  x = f32[6,4] parameter(0), sharding={devices=[2,1]<=[2]}
  n = s32[] constant(5)
  zero = s32[] constant(0)
  d = f32[<=6,4] set-dimension-size(x, n), dimensions={0}
  t = (s32[], f32[<=6,4]) tuple(zero, d)
  w = (s32[], f32[<=6,4]) while(t), condition=cond, body=body
  ROOT r = f32[<=6,4] get-tuple-element(w), index=1
}
)",
                        {}),
            "");
}

TEST(DynamicSizes, AShardingThatCutsOneIsRefused) {
  EXPECT_THAT(PartitionText(Program(4, "{replicated}",
                                    "  ROOT r = f32[8,<=6] copy(m), "
                                    "sharding={devices=[4,1]<=[4]}\n"),
                            {}),
              Fails("E054", "is not sharded at r"));
}

}  // namespace
}  // namespace shardcall
