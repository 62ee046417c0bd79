// SPDX-License-Identifier: Apache-2.0
// Ops that make the same value: it is sent once.
#include "shardcall/partitioner/ir/analysis/equal_values.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/charged.h"
#include "tests/support/program_family.h"
#include "tests/support/verify_text.h"

namespace shardcall {
namespace {

// Of each instruction of the entry that has an equal one before it, both names.
std::string Equal(const std::string& text) {
  const auto m = ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(),
                             "test.hlo");
  EXPECT_TRUE(m.ok()) << m.status();
  const std::vector<InstrId> equal = EqualValues(*m);
  std::string out;
  for (const InstrId id : m->comp(m->entry()).instructions) {
    if (!equal[id.value].valid()) continue;
    absl::StrAppend(&out, m->instr(id).name, "=", m->instr(equal[id.value]).name, " ");
  }
  return out;
}

TEST(EqualValues, AreFoundThroughOperandsReducersAndConstants) {
  EXPECT_EQ(Equal(R"(HloModule m
sum.1 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
sum.2 {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
other {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] multiply(x, y)
}
ENTRY main {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  c = f32[] constant(0)
  d = f32[] constant(0)
  e = f32[] constant(1)
  s = f32[8] sine(p)
  t = f32[8] sine(p)
  u = f32[8] sine(q)
  r = f32[] reduce(s, c), dimensions={0}, to_apply=sum.1
  v = f32[] reduce(t, d), dimensions={0}, to_apply=sum.2
  w = f32[] reduce(t, d), dimensions={0}, to_apply=other
  x = f32[] reduce(t, e), dimensions={0}, to_apply=sum.2
  ROOT o = (f32[8], f32[], f32[], f32[], f32[]) tuple(u, r, v, w, x)
})"),
            "d=c t=s v=r ");
}

TEST(EqualValues, AreNotThoseOfDrawsBarriersAndCalls) {
  EXPECT_EQ(Equal(R"(HloModule m
ENTRY main {
  p = f32[8] parameter(0)
  z = f32[] constant(0)
  one = f32[] constant(1)
  a = f32[8] rng(z, one), distribution=rng_uniform
  b = f32[8] rng(z, one), distribution=rng_uniform
  c = f32[8] opt-barrier(p)
  d = f32[8] opt-barrier(p)
  e = f32[8] sine(c)
  f = f32[8] sine(d)
  g = f32[8] custom-call(p), custom_call_target="t"
  h = f32[8] custom-call(p), custom_call_target="t"
  ROOT o = (f32[8], f32[8], f32[8], f32[8], f32[8], f32[8]) tuple(a, b, e, f, g, h)
})"),
            "");
}

// The same product of gathered weights, twice, as a program has it whose gradient is taken twice.
constexpr char kTwice[] = R"(
ENTRY main {
  x = f32[@A,@K] parameter(0)<0:2>
  w = f32[@B,@K] parameter(1)<1:2>
  t = f32[@K,@B] transpose(w), dimensions={1,0}
  d = f32[@A,@B] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[@A,@B] negate(d)
  u = f32[@K,@B] transpose(w), dimensions={1,0}
  e = f32[@A,@B] dot(x, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  m = f32[@A,@B] multiply(s, e)<2:2>
  f = f32[@A,@B] dot(x, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}<3:2>
  ROOT r = (f32[@A,@B], f32[@A,@B]) tuple(m, f)
}
)";

TEST(EqualValues, UnderEverySharding) {
  VerifyFamily({.text = kTwice,
                .sizes = {{{'A', 8}, {'K', 16}, {'B', 4}}, {{'A', 5}, {'K', 7}, {'B', 3}}},
                .meshes = {{{4, 2}}, {{2, 2, 2}}},
                .max_cases = 300,
                .no_fallback = true});
}

TEST(EqualValues, AreSentOnce) {
  const std::string text = R"(HloModule m, num_partitions=8
ENTRY main {
  x = f32[64,128] parameter(0), sharding={devices=[8,1]<=[8]}
  y = f32[64,128] parameter(1), sharding={devices=[8,1]<=[8]}
  w = f32[32,128] parameter(2), sharding={devices=[8,1]<=[8]}
  t = f32[128,32] transpose(w), dimensions={1,0}
  d = f32[64,32] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  u = f32[128,32] transpose(w), dimensions={1,0}
  e = f32[64,32] dot(y, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT m = f32[64,32] multiply(d, e), sharding={devices=[8,1]<=[8]}
})";
  TextOptions options;
  options.search = StateSearch::kNone;
  const auto p = PartitionText(text, options);
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(TotalBytesMoved((*p)->local), 4 * 32 * 128 * 7. / 8);
  EXPECT_EQ(WhyChargedOtherwise(**p, options.spmd), "");
  EXPECT_EQ(WhyNotEqual(text, options), "");
}

}  // namespace
}  // namespace shardcall
