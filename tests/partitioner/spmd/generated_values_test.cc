// SPDX-License-Identifier: Apache-2.0
// Values that are made of constants and iotas, wanted in several shardings: each device makes its
// part of each, and nothing is sent.
#include "shardcall/partitioner/ir/analysis/generated_values.h"

#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "tests/partitioner/spmd/plan_testing.h"

namespace shardcall {
namespace {

// Zeros of two moments of one parameter, as an optimizer begins with, and a table of positions.
constexpr char kTwice[] = R"(
  zero = f32[] constant(0)
  z = f32[@A,@B] broadcast(zero), dimensions={}
  a = f32[@A,@B] copy(z)<0:2>
  b = f32[@A,@B] copy(z)<1:2>
  i = s32[@A] iota(), iota_dimension=0
  f = f32[@A] convert(i)
  s = f32[@A] multiply(f, f)
  t = f32[@A,@B] broadcast(s), dimensions={0}
  low = f32[] constant(3)
  high = f32[] constant(40)
  c = f32[@A,@B] clamp(low, t, high)
  d = f32[@A,@B] negate(c)<0:2>
  e = f32[@A,@B] negate(c)<1:2>
  g = f32[@A,@B] custom-call(c), custom_call_target="Sharding"<1:2>
  h = f32[@A,@B] negate(g)<0:2>
  ROOT r = (f32[@A,@B], f32[@A,@B], f32[@A,@B], f32[@A,@B], f32[@A,@B]) tuple(a, b, d, e, h)
)";

TEST(GeneratedValues, AreMadeInEveryShardingThatIsWanted) {
  VerifyFamily({.text = kTwice,
                .sizes = {{{'A', 8}, {'B', 16}}, {{'A', 5}, {'B', 3}}, {{'A', 1}, {'B', 9}}},
                .meshes = {{{4, 2}}, {{6}}, {{2, 2, 2}}},
                .max_cases = 200,
                .no_fallback = true});
}

TEST(GeneratedValues, SendNothing) {
  EXPECT_EQ(BytesMoved(R"(
  x = f32[64,32] parameter(0), sharding={devices=[8,1]<=[8]}
  i = f32[64] iota(), iota_dimension=0
  t = f32[64,32] broadcast(i), dimensions={0}
  c = f32[64,32] cosine(t)
  rows = f32[64,32] multiply(c, x), sharding={devices=[8,1]<=[8]}
  y = f32[64,32] parameter(1), sharding={devices=[1,8]<=[8]}
  columns = f32[64,32] multiply(c, y), sharding={devices=[1,8]<=[8]}
  z = f32[64,32] parameter(2)
  whole = f32[64,32] multiply(c, z), sharding={replicated}
  ROOT r = (f32[64,32], f32[64,32], f32[64,32]) tuple(rows, columns, whole), sharding={{devices=[8,1]<=[8]}, {devices=[1,8]<=[8]}, {replicated}}
)"),
            0);
}

// An annotation of an element of a tuple is the value that the tuple was made of.
TEST(GeneratedValues, AreMadeWhereAnAnnotatedElementOfATupleIsWanted) {
  const std::string body = R"(
  x = f32[8,8] parameter(0), sharding={devices=[4,1]<=[4]}
  i = f32[8,8] iota(), iota_dimension=0
  t = (f32[8,8], f32[8,8]) tuple(x, i)
  g = f32[8,8] get-tuple-element(t), index=1
  a = f32[8,8] add(i, x)
  s = f32[8,8] custom-call(g), custom_call_target="Sharding", sharding={devices=[1,4]<=[4]}
  u = (f32[8,8], f32[8,8]) tuple(a, s)
  v = (f32[8,8], f32[8,8]) custom-call(u), custom_call_target="Sharding", sharding={{devices=[4,1]<=[4]}, {devices=[1,4]<=[4]}}
  w = f32[8,8] get-tuple-element(v), index=1
  n = f32[8,8] multiply(w, x), sharding={devices=[4,1]<=[4]}
  c = f32[8,8] negate(w), sharding={devices=[1,4]<=[4]}
  ROOT r = (f32[8,8], f32[8,8], f32[8,8]) tuple(a, n, c), sharding={{devices=[4,1]<=[4]}, {devices=[4,1]<=[4]}, {devices=[1,4]<=[4]}}
)";
  EXPECT_EQ(WhyNotEqual(Instantiate(body, {}, TestMesh{{4}}, {}), {}), "");
  EXPECT_EQ(BytesMoved(body, 4), 0);
}

TEST(GeneratedValues, AreThoseOfAFewElementwiseOps) {
  std::string text = R"(HloModule m
ENTRY main {
  x = f32[8] parameter(0)
  i = f32[8] iota(), iota_dimension=0
  one = f32[] constant(1)
  list = f32[8] constant({1,2,3,4,5,6,7,8})
  o = f32[8] broadcast(one), dimensions={}
  s = f32[8] add(i, o)
  t = f32[8] add(i, x)
  l = f32[8] add(i, list)
  n = f32[8] rng(one, one), distribution=rng_uniform
  a0 = f32[8] negate(s)
)";
  for (int k = 1; k < 40; ++k) {
    text += "  a" + std::to_string(k) + " = f32[8] negate(a" + std::to_string(k - 1) + ")\n";
  }
  const auto module = ParseText(text + "  ROOT r = f32[8] add(a39, t)\n}\n");
  ASSERT_TRUE(module.ok()) << module.status();
  const std::vector<bool> generated = internal::GeneratedValues(*module);
  const auto is = [&](absl::string_view name) {
    for (int k = 0; k < module->num_instructions(); ++k) {
      if (module->instr(InstrId(k)).name == name) return static_cast<bool>(generated[k]);
    }
    ADD_FAILURE() << name;
    return false;
  };
  for (const char* name : {"i", "one", "o", "s", "a0", "a20"}) EXPECT_TRUE(is(name)) << name;
  for (const char* name : {"x", "list", "t", "l", "n", "a30"}) EXPECT_FALSE(is(name)) << name;
}

// A loop adds products to a constant and reduces the total once, so that only one device may begin
// with the constant.
TEST(GeneratedValues, BeginASumOverDevicesOnce) {
  for (const absl::string_view begin :
       {"broadcast(quarter), dimensions={}", "iota(), iota_dimension=0"}) {
    const std::string text = absl::StrReplaceAll(R"(HloModule m, num_partitions=8
body {
  b = (s32[], f32[8,8], f32[4,16,8]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  c = f32[8,8] get-tuple-element(b), index=1
  x = f32[4,16,8] get-tuple-element(b), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  n = s32[] add(i, one)
  s = f32[1,16,8] dynamic-slice(x, i, zero, zero), dynamic_slice_sizes={1,16,8}
  r = f32[16,8] reshape(s)
  d = f32[8,8] dot(r, r), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  a = f32[8,8] add(c, d)
  ROOT t = (s32[], f32[8,8], f32[4,16,8]) tuple(n, a, x)
}
condition {
  b = (s32[], f32[8,8], f32[4,16,8]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  trips = s32[] constant(4)
  ROOT l = pred[] compare(i, trips), direction=LT
}
ENTRY main {
  x = f32[4,16,8] parameter(0), sharding={devices=[1,4,1,2]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}
  quarter = f32[] constant(0.25)
  z = f32[8,8] BEGIN
  m = f32[8,8] negate(z)
  start = s32[] constant(0)
  init = (s32[], f32[8,8], f32[4,16,8]) tuple(start, m, x)
  loop = (s32[], f32[8,8], f32[4,16,8]) while(init), condition=condition, body=body
  ROOT r = f32[8,8] get-tuple-element(loop), index=1
})",
                                                 {{"BEGIN", begin}});
    for (const StateSearch search : {StateSearch::kNone, StateSearch::kAll}) {
      TextOptions options;
      options.search = search;
      options.spmd.cost.bandwidth = 1e6;
      options.spmd.cost.latency = 1e-9;
      EXPECT_EQ(WhyNotEqual(text, options), "") << text;
    }
  }
}

}  // namespace
}  // namespace shardcall
