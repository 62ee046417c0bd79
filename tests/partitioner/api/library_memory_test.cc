// SPDX-License-Identifier: Apache-2.0
// What the library calls of XLA:CPU, its expansions and the order in which it runs instructions
// leave in memory. The figures of CPUs are those of jaxlib 0.10.2 (get_compiled_memory_stats).
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/api/device_memory.h"
#include "shardcall/partitioner/ir/text/parser.h"

namespace shardcall {
namespace {

constexpr int64_t kSquare = 64 * 64 * 4;

int64_t TemporariesOf(const std::string& instructions, XlaBackend backend = XlaBackend::kCpu) {
  const std::string text =
      absl::StrReplaceAll(absl::StrCat(R"(HloModule m, num_partitions=2
add {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}
ge {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = pred[] compare(l, r), direction=GE
}
ENTRY main {
  x = f32[64,64] parameter(0)
  zero = f32[] constant(0)
)",
                                       instructions, "}\n"),
                          {{")MUL", "), lhs_contracting_dims={1}, rhs_contracting_dims={0}"}});
  auto module = ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(),
                            "test.hlo");
  EXPECT_TRUE(module.ok()) << module.status();
  return CountDeviceMemory(*module, backend).temporaries;
}

TEST(LibraryMemory, AReductionRunsWithAllThatIsComputedForItAndFromItAlone) {
  EXPECT_EQ(TemporariesOf(R"(  y = f32[64,64] dot(x, x)MUL
  mean = f32[64] parameter(1)
  means = f32[64,64] broadcast(mean), dimensions={1}
  d = f32[64,64] subtract(y, means)
  q = f32[64,64] multiply(d, d)
  var = f32[64] reduce(q, zero), dimensions={0}, to_apply=add
  v = f32[64,64] broadcast(var), dimensions={1}
  n = f32[64,64] multiply(d, v)
  ROOT z = f32[64,64] dot(n, x)MUL
)"),
            0);
}

TEST(LibraryMemory, WhatOthersUseIsInMemory) {
  EXPECT_EQ(TemporariesOf(R"(  y = f32[64,64] dot(x, x)MUL
  d = f32[64,64] tanh(y)
  q = f32[64,64] multiply(d, d)
  s = f32[64] reduce(q, zero), dimensions={0}, to_apply=add
  w = f32[64,64] dot(d, x)MUL
  ROOT t = (f32[64], f32[64,64]) tuple(s, w)
)"),
            kSquare);  // d; y is in the memory of w
}

TEST(LibraryMemory, SmallReductionsAreLoops) {
  EXPECT_EQ(TemporariesOf(R"(  u = f32[32,64] parameter(1)
  y = f32[32,64] dot(u, x)MUL
  e = f32[32,64] tanh(y)
  q = f32[32,64] multiply(e, e)
  s = f32[64] reduce(q, zero), dimensions={0}, to_apply=add
  b = f32[32,64] broadcast(s), dimensions={1}
  w = f32[32,64] multiply(e, b)
  ROOT z = f32[32,64] dot(w, x)MUL
)"),
            kSquare / 2 + 256);
}

// The places of what the windows select, for both dimensions, and the operand; on GPUs the places
// are made on the way.
TEST(LibraryMemory, ASelectAndScatterKeepsThePlacesOfItsOperand) {
  const std::string text = R"(  y = f32[64,64] dot(x, x)MUL
  s = f32[32,32] parameter(1)
  w = f32[64,64] select-and-scatter(y, s, zero), window={size=2x2 stride=2x2}, select=ge, scatter=add
  ROOT z = f32[64,64] dot(w, x)MUL
)";
  EXPECT_GE(TemporariesOf(text), 3 * kSquare);  // 65,560
  EXPECT_LE(TemporariesOf(text), 4 * kSquare);
  EXPECT_LT(TemporariesOf(text, XlaBackend::kGpu), 2 * kSquare);
}

// The gathered columns are put into order for the product. The result reads them as they came, so
// it need not wait for that.
TEST(LibraryMemory, WhatIsComputedOnTheWayIsNotWaitedFor) {
  EXPECT_EQ(
      TemporariesOf(
          R"(  g = f32[64,128] all-gather(x), dimensions={1}, replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true
  a = f32[64,128] dot(x, g)MUL
  b = f32[64,128] dot(x, a)MUL
  c = f32[64,128] dot(x, b)MUL
  r = f32[64,128] reverse(g), dimensions={0}
  ROOT t = (f32[64,128], f32[64,128]) tuple(c, r)
)"),
      2 * kSquare);
}

TEST(LibraryMemory, OnGpusACollectiveBesideOtherOpsKeepsAddresses) {
  const std::string alone =
      R"(  g = f32[128,64] all-gather(x), dimensions={0}, replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true
  ROOT y = f32[128,64] dot(g, x)MUL
)";
  const std::string beside =
      R"(  g = f32[128,64] all-gather(x), dimensions={0}, replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true
  z = f32[64,64] dot(x, x)MUL
  y = f32[128,64] dot(g, x)MUL
  ROOT t = (f32[128,64], f32[64,64]) tuple(y, z)
)";
  EXPECT_EQ(TemporariesOf(alone, XlaBackend::kGpu), 2 * kSquare);
  EXPECT_EQ(TemporariesOf(beside, XlaBackend::kGpu), 2 * kSquare + 2 * 256);
  EXPECT_EQ(TemporariesOf(alone), 2 * kSquare);
  EXPECT_EQ(TemporariesOf(beside), 2 * kSquare);
}

TEST(LibraryMemory, AConstraintOfALayoutIsItsOperand) {
  const std::string plain = R"(  a = f32[64,64] dot(x, x)MUL
  ROOT z = f32[64,64] dot(a, a)MUL
)";
  const std::string constrained = R"(  a = f32[64,64] dot(x, x)MUL
  c = f32[64,64]{1,0} custom-call(a), custom_call_target="LayoutConstraint", operand_layout_constraints={f32[64,64]{1,0}}
  ROOT z = f32[64,64] dot(c, c)MUL
)";
  EXPECT_EQ(TemporariesOf(constrained), kSquare);
  EXPECT_EQ(TemporariesOf(plain), kSquare);
}

}  // namespace
}  // namespace shardcall
