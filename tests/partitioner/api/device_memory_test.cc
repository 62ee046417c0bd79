// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/device_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "shardcall/partitioner/ir/text/parser.h"

namespace shardcall {
namespace {

DeviceMemory Count(const std::string& text) {
  auto module = ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(),
                            "test.hlo");
  EXPECT_TRUE(module.ok()) << module.status();
  return CountDeviceMemory(*module);
}

TEST(DeviceMemoryTest, AValueIsHeldToItsLastUse) {
  const DeviceMemory m = Count(R"(
HloModule m
ENTRY main {
  x = f32[4]{0} parameter(0)
  a = f32[4]{0} negate(x)
  b = f32[8]{0} concatenate(a, a), dimensions={0}
  c = f32[4]{0} slice(b), slice={[0:4]}
  d = f32[4]{0} add(c, x)
  ROOT e = f32[4]{0} add(d, d)
}
)");
  EXPECT_EQ(m.arguments, 16);
  EXPECT_EQ(m.outputs, 16);
  EXPECT_EQ(m.temporaries, 48);  // a with b, or b with c
}

TEST(DeviceMemoryTest, TuplesAndTheirPartsAreTheMemoryOfWhatTheyHold) {
  const DeviceMemory m = Count(R"(
HloModule m
ENTRY main {
  x = f32[4]{0} parameter(0)
  a = f32[4]{0} negate(x)
  t = (f32[4]{0}, f32[4]{0}) tuple(a, x)
  g = f32[4]{0} get-tuple-element(t), index=0
  b = f32[4]{0} add(g, g)
  ROOT r = (f32[4]{0}, f32[4]{0}) tuple(b, x)
}
)");
  EXPECT_EQ(m.outputs, 32);
  EXPECT_EQ(m.temporaries, 16);  // a; b is an output
}

TEST(DeviceMemoryTest, WhatReinterpretsOrOrdersValuesHasNoMemoryOfItsOwn) {
  const DeviceMemory m = Count(R"(
HloModule m
ENTRY main {
  x = f32[4]{0} parameter(0)
  a = f32[4]{0} negate(x)
  k = token[] after-all()
  b = f32[4]{0} add-dependency(a, k)
  c = f32[2,2]{1,0} reshape(b)
  d = f32[2,2]{1,0} copy(c)
  ROOT e = f32[2,2]{1,0} add(d, d)
}
)");
  EXPECT_EQ(m.temporaries, 16);  // a, which the others are names of
}

TEST(DeviceMemoryTest, ALoopNeedsWhatItsBodyHoldsAtMost) {
  const DeviceMemory m = Count(R"(
HloModule m
body {
  p = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4]{0} get-tuple-element(p), index=1
  z = f32[] constant(2)
  big = f32[64]{0} broadcast(z), dimensions={}
  part = f32[4]{0} slice(big), slice={[0:4]}
  y = f32[4]{0} add(x, part)
  ROOT r = (s32[], f32[4]{0}) tuple(i, y)
}
condition {
  p = (s32[], f32[4]{0}) parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY main {
  x = f32[4]{0} parameter(0)
  i = s32[] constant(0)
  t = (s32[], f32[4]{0}) tuple(i, x)
  w = (s32[], f32[4]{0}) while(t), condition=condition, body=body
  ROOT r = f32[4]{0} get-tuple-element(w), index=1
}
)");
  // In the body the large value with its part; around it i. What the loop gives is the
  // output's memory.
  EXPECT_EQ(m.temporaries, 256 + 16 + 4);
}

}  // namespace
}  // namespace shardcall
