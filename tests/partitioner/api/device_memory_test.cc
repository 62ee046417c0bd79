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
  x = f32[4,4]{1,0} parameter(0)
  a = f32[4,4]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[4,4]{1,0} dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[4,4]{1,0} dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT e = f32[4,4]{1,0} dot(c, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)");
  EXPECT_EQ(m.arguments, 64);
  EXPECT_EQ(m.outputs, 64);
  EXPECT_EQ(m.temporaries, 128);  // a with b, or b with c
}

TEST(DeviceMemoryTest, ElementwiseValuesAreComputedWhereTheyAreUsed) {
  const DeviceMemory m = Count(R"(
HloModule m
add {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}
ENTRY main {
  x = f32[64]{0} parameter(0)
  zero = f32[] constant(0)
  zeros = f32[64]{0} broadcast(zero), dimensions={}
  a = f32[64]{0} maximum(x, zeros)
  b = f32[64]{0} multiply(a, zeros)
  ROOT e = f32[] reduce(b, zero), dimensions={0}, to_apply=add
}
)");
  EXPECT_EQ(m.temporaries, 0);
}

TEST(DeviceMemoryTest, WhatTwoOpsUseIsNotComputedTwice) {
  const DeviceMemory m = Count(R"(
HloModule m
ENTRY main {
  x = f32[64]{0} parameter(0)
  a = f32[64]{0} exponential(x)
  b = f32[64]{0} negate(a)
  c = f32[32]{0} slice(a), slice={[0:32]}
  ROOT t = (f32[64]{0}, f32[32]{0}) tuple(b, c)
}
)");
  EXPECT_EQ(m.temporaries, 256);
}

TEST(DeviceMemoryTest, AnElementwiseOpOverwritesAnOperandThatNothingElseUses) {
  const DeviceMemory m = Count(R"(
HloModule m
ENTRY main {
  x = f32[4,4]{1,0} parameter(0)
  a = f32[4,4]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[4,4]{1,0} negate(a)
  c = f32[4,4]{1,0} dot(b, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT e = f32[4,4]{1,0} dot(c, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)");
  EXPECT_EQ(m.temporaries, 128);  // b, in the place of a, with c
}

TEST(DeviceMemoryTest, TuplesAndTheirPartsAreTheMemoryOfWhatTheyHold) {
  const DeviceMemory m = Count(R"(
HloModule m
add {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}
ENTRY main {
  x = f32[4]{0} parameter(0)
  a = f32[4]{0} all-reduce(x), replica_groups={{0}}, to_apply=add
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
add {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}
ENTRY main {
  x = f32[4]{0} parameter(0)
  a = f32[4]{0} all-reduce(x), replica_groups={{0}}, to_apply=add
  k = token[] after-all()
  b = f32[4]{0} add-dependency(a, k)
  c = f32[2,2]{1,0} reshape(b)
  d = f32[2,2]{1,0} copy(c)
  ROOT e = f32[2,2]{1,0} add(d, d)
}
)");
  EXPECT_EQ(m.temporaries, 16);  // a, which the others are names of
}

// A loop whose body is `body`, of p = (i, x), and gives (i, y).
std::string Loop(const std::string& body, const std::string& init) {
  return R"(
HloModule m
body {
  p = (s32[], f32[8,8]{1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8,8]{1,0} get-tuple-element(p), index=1
)" + body +
         R"(  ROOT r = (s32[], f32[8,8]{1,0}) tuple(i, y)
}
condition {
  p = (s32[], f32[8,8]{1,0}) parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY main {
  a = f32[8,8]{1,0} parameter(0)
)" + init +
         R"(
  i = s32[] constant(0)
  t = (s32[], f32[8,8]{1,0}) tuple(i, x)
  w = (s32[], f32[8,8]{1,0}) while(t), condition=condition, body=body
  g = f32[8,8]{1,0} get-tuple-element(w), index=1
  ROOT r = f32[8,8]{1,0} dot(g, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
}
constexpr char kDot[] =
    "f32[8,8]{1,0} dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";

TEST(DeviceMemoryTest, ALoopWorksInTheMemoryOfWhatItBeginsWith) {
  EXPECT_EQ(
      Count(Loop("  y = f32[8,8]{1,0} negate(x)\n", std::string("  x = ") + kDot)).temporaries,
      256);
}

TEST(DeviceMemoryTest, ALoopThatBeginsWithAParameterCopiesIt) {
  EXPECT_EQ(
      Count(Loop("  y = f32[8,8]{1,0} negate(x)\n", "  x = f32[8,8]{1,0} copy(a)\n")).temporaries,
      256);
  EXPECT_EQ(
      Count(Loop("  y = f32[8,8]{1,0} copy(x)\n", "  x = f32[8,8]{1,0} copy(a)\n")).temporaries,
      256)
      << "the copy is the only change";
}

TEST(DeviceMemoryTest, ABodyHasRoomForANewValueWhileItUsesTheOldOne) {
  EXPECT_EQ(Count(Loop("  y = f32[8,8]{1,0} dot(x, x), lhs_contracting_dims={1}, "
                       "rhs_contracting_dims={0}\n",
                       std::string("  x = ") + kDot))
                .temporaries,
            512);
}

TEST(DeviceMemoryTest, WhatALoopInALoopStacksHasRoomBesideTheOldValues) {
  // As of scans within a scan: the outer loop carries u and v, and in each of its steps the inner
  // one writes rows of their new values over zeros, while it reads those of the old ones.
  const std::string text = R"(
HloModule m
inner {
  p = (s32[], f32[8,8], f32[8,8], f32[8,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  u = f32[8,8] get-tuple-element(p), index=1
  v = f32[8,8] get-tuple-element(p), index=2
  new_u = f32[8,8] get-tuple-element(p), index=3
  new_v = f32[8,8] get-tuple-element(p), index=4
  zero = s32[] constant(0)
  row_u = f32[1,8] dynamic-slice(u, i, zero), dynamic_slice_sizes={1,8}
  row_v = f32[1,8] dynamic-slice(v, i, zero), dynamic_slice_sizes={1,8}
  next_u = f32[8,8] dynamic-update-slice(new_u, row_u, i, zero)
  next_v = f32[8,8] dynamic-update-slice(new_v, row_v, i, zero)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT r = (s32[], f32[8,8], f32[8,8], f32[8,8], f32[8,8]) tuple(next, u, v, next_u, next_v)
}
inner_condition {
  p = (s32[], f32[8,8], f32[8,8], f32[8,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  end = s32[] constant(8)
  ROOT c = pred[] compare(i, end), direction=LT
}
outer {
  p = (s32[], f32[8,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  u = f32[8,8] get-tuple-element(p), index=1
  v = f32[8,8] get-tuple-element(p), index=2
  zero = s32[] constant(0)
  nought = f32[] constant(0)
  zeros = f32[8,8] broadcast(nought), dimensions={}
  t = (s32[], f32[8,8], f32[8,8], f32[8,8], f32[8,8]) tuple(zero, u, v, zeros, zeros)
  w = (s32[], f32[8,8], f32[8,8], f32[8,8], f32[8,8]) while(t), condition=inner_condition, body=inner
  new_u = f32[8,8] get-tuple-element(w), index=3
  new_v = f32[8,8] get-tuple-element(w), index=4
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT r = (s32[], f32[8,8], f32[8,8]) tuple(next, new_u, new_v)
}
outer_condition {
  p = (s32[], f32[8,8], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  end = s32[] constant(4)
  ROOT c = pred[] compare(i, end), direction=LT
}
ENTRY main {
  u = f32[8,8] parameter(0)
  v = f32[8,8] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[8,8], f32[8,8]) tuple(zero, u, v)
  w = (s32[], f32[8,8], f32[8,8]) while(t), condition=outer_condition, body=outer
  new_u = f32[8,8] get-tuple-element(w), index=1
  new_v = f32[8,8] get-tuple-element(w), index=2
  ROOT r = (f32[8,8], f32[8,8]) tuple(new_u, new_v)
}
)";
  const DeviceMemory m = Count(text);
  EXPECT_EQ(m.outputs, 512);  // of the outer loop
  EXPECT_GE(m.temporaries, 512);
  EXPECT_LE(m.temporaries, 512 + 80);  // of the inner one, a row of each, and the counts
}

TEST(DeviceMemoryTest, ALoopWorksInTheMemoryOfTheLoopBeforeIt) {
  const std::string loops = R"(
HloModule m
body {
  p = (f32[8,8], f32[8,8]) parameter(0)
  x = f32[8,8] get-tuple-element(p), index=0
  y = f32[8,8] get-tuple-element(p), index=1
  new_x = f32[8,8] negate(x)
  new_y = f32[8,8] negate(y)
  ROOT r = (f32[8,8], f32[8,8]) tuple(new_x, new_y)
}
condition {
  p = (f32[8,8], f32[8,8]) parameter(0)
  ROOT c = pred[] constant(false)
}
ENTRY main {
  a = f32[8,8] parameter(0)
  x = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[8,8] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = (f32[8,8], f32[8,8]) tuple(x, y)
  w = (f32[8,8], f32[8,8]) while(t), condition=condition, body=body
  u = f32[8,8] get-tuple-element(w), index=0
  v = f32[8,8] get-tuple-element(w), index=1
  s = (f32[8,8], f32[8,8]) tuple(u, v)
  z = (f32[8,8], f32[8,8]) while(s), condition=condition, body=body
  g = f32[8,8] get-tuple-element(z), index=0
  h = f32[8,8] get-tuple-element(z), index=1
  ROOT r = f32[8,8] dot(g, h), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
  EXPECT_EQ(Count(loops).temporaries, 512);  // x and y all the way
}

TEST(DeviceMemoryTest, ALoopNeedsWhatItsBodyHoldsAtMost) {
  EXPECT_EQ(Count(Loop(R"(  big = f32[8,64]{1,0} iota(), iota_dimension=0
  small = f32[8,8]{1,0} dot(big, big), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  y = f32[8,8]{1,0} add(x, small)
)",
                       std::string("  x = ") + kDot))
                .temporaries,
            256 + 2048 + 256);
}

TEST(DeviceMemoryTest, WhatIsHeldAtThePeakIsNamedTheLargestFirst) {
  const std::string text = R"(
HloModule m
ENTRY main {
  x = f32[4,4]{1,0} parameter(0)
  a = f32[4,4]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="f" source_file="model.py" source_line=7}
  b = f32[4,8]{1,0} concatenate(a, x), dimensions={1}
  c = f32[8,8]{1,0} dot(b, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  d = f32[4,8]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT e = f32[4,8]{1,0} dot(d, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";
  auto module = ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(),
                            "test.hlo");
  ASSERT_TRUE(module.ok()) << module.status();
  const MemoryAtPeak peak = ListMemoryAtPeak(*module, 10);
  EXPECT_EQ(peak.at, "%d");
  ASSERT_EQ(peak.held.size(), 4);
  EXPECT_EQ(peak.held[0].value, "%c");
  EXPECT_EQ(peak.held[0].bytes, 256);
  EXPECT_EQ(peak.held[3].value, "%a");
  EXPECT_EQ(peak.held[3].source, "model.py:7");
  EXPECT_EQ(ListMemoryAtPeak(*module, 2).held.size(), 2);
  EXPECT_EQ(
      DescribePeak(*module).find("768 B: 64 B arguments, 128 B outputs, 576 B temporaries at %d, "
                                 "of which %c has 256 B"),
      0)
      << DescribePeak(*module);
}

}  // namespace
}  // namespace shardcall
