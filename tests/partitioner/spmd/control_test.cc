// SPDX-License-Identifier: Apache-2.0
// While (nested, with sharded carries), conditional, calls that are not
// inlined, tuples, barriers.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {
    {{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 7}}, {{'A', 3}, {'B', 5}}};

TEST(While, CarriesMayBeShardedAndMeetOtherShardingsInside) {
  VerifyFamily({.text = R"(
body {
  p = (s32[], f32[@A,@B], f32[@A,@B]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[@A,@B] get-tuple-element(p), index=1
  y = f32[@A,@B] get-tuple-element(p), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  s = f32[@A,@B] subtract(y, x)<2:2>
  ROOT t = (s32[], f32[@A,@B], f32[@A,@B]) tuple(n, s, x)
}

condition {
  p = (s32[], f32[@A,@B], f32[@A,@B]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(i, three), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  x = f32[@A,@B] parameter(0)<0:2>
  y = f32[@A,@B] parameter(1)<1:2>
  t = (s32[], f32[@A,@B], f32[@A,@B]) tuple(zero, x, y)
  w = (s32[], f32[@A,@B], f32[@A,@B]) while(t), condition=condition, body=body
  ROOT r = f32[@A,@B] get-tuple-element(w), index=1
}
)",
                .sizes = kSizes,
                .max_cases = 300,
                .no_fallback = true});
}

TEST(While, ThePredicateMayDependOnShardedData) {
  VerifyFamily({.text = R"(
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

body {
  x = f32[@A,@B] parameter(0)
  one = f32[] constant(1)
  ones = f32[@A,@B] broadcast(one), dimensions={}
  ROOT s = f32[@A,@B] add(x, ones)
}

condition {
  x = f32[@A,@B] parameter(0)
  zero = f32[] constant(0)
  s = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add
  limit = f32[] constant(40)
  ROOT r = pred[] compare(s, limit), direction=LT
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  ROOT w = f32[@A,@B] while(x), condition=condition, body=body<1:2>
}
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

TEST(While, NestedLoopsWithProductsInside) {
  VerifyFamily({.text = R"(
inner {
  p = (s32[], f32[@A,@A], f32[@A,@A]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[@A,@A] get-tuple-element(p), index=1
  m = f32[@A,@A] get-tuple-element(p), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  d = f32[@A,@A] dot(x, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[@A,@A], f32[@A,@A]) tuple(n, d, m)
}

inner_condition {
  p = (s32[], f32[@A,@A], f32[@A,@A]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  two = s32[] constant(2)
  ROOT r = pred[] compare(i, two), direction=LT
}

outer {
  p = (s32[], f32[@A,@A], f32[@A,@A]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[@A,@A] get-tuple-element(p), index=1
  m = f32[@A,@A] get-tuple-element(p), index=2
  zero = s32[] constant(0)
  t = (s32[], f32[@A,@A], f32[@A,@A]) tuple(zero, x, m)
  w = (s32[], f32[@A,@A], f32[@A,@A]) while(t), condition=inner_condition, body=inner
  y = f32[@A,@A] get-tuple-element(w), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT o = (s32[], f32[@A,@A], f32[@A,@A]) tuple(n, y, m)
}

outer_condition {
  p = (s32[], f32[@A,@A], f32[@A,@A]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  two = s32[] constant(2)
  ROOT r = pred[] compare(i, two), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  x = f32[@A,@A] parameter(0)<0:2>
  m = f32[@A,@A] parameter(1)<1:2>
  t = (s32[], f32[@A,@A], f32[@A,@A]) tuple(zero, x, m)
  w = (s32[], f32[@A,@A], f32[@A,@A]) while(t), condition=outer_condition, body=outer
  ROOT r = f32[@A,@A] get-tuple-element(w), index=1
}
)",
                .sizes = {{{'A', 4}}, {{'A', 5}}, {{'A', 3}}},
                .max_cases = 200,
                .no_fallback = true});
}

TEST(While, ScanThatReadsAndWritesRows) {
  VerifyFamily({.text = R"(
body {
  p = (s32[], f32[@B], f32[@A,@B], f32[@A,@B]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  c = f32[@B] get-tuple-element(p), index=1
  xs = f32[@A,@B] get-tuple-element(p), index=2
  ys = f32[@A,@B] get-tuple-element(p), index=3
  zero = s32[] constant(0)
  row = f32[1,@B] dynamic-slice(xs, i, zero), dynamic_slice_sizes={1,@B}
  r = f32[@B] reshape(row)
  s = f32[@B] add(c, r)
  sr = f32[1,@B] reshape(s)
  out = f32[@A,@B] dynamic-update-slice(ys, sr, i, zero)
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT t = (s32[], f32[@B], f32[@A,@B], f32[@A,@B]) tuple(n, s, xs, out)
}

condition {
  p = (s32[], f32[@B], f32[@A,@B], f32[@A,@B]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(@A)
  ROOT r = pred[] compare(i, n), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  fzero = f32[] constant(0)
  c = f32[@B] parameter(0)<0:1>
  xs = f32[@A,@B] parameter(1)<1:2>
  ys = f32[@A,@B] broadcast(fzero), dimensions={}
  t = (s32[], f32[@B], f32[@A,@B], f32[@A,@B]) tuple(zero, c, xs, ys)
  w = (s32[], f32[@B], f32[@A,@B], f32[@A,@B]) while(t), condition=condition, body=body
  last = f32[@B] get-tuple-element(w), index=1
  out = f32[@A,@B] get-tuple-element(w), index=3
  o = f32[@A,@B] copy(out)<2:2>
  ROOT r = (f32[@B], f32[@A,@B]) tuple(last, o)
}
)",
                .sizes = kSizes,
                .max_cases = 200});
}

TEST(Conditional, BranchesMeetInOneSharding) {
  VerifyFamily({.text = R"(
yes {
  x = f32[@A,@B] parameter(0)
  y = f32[@A,@B] negate(x)<1:2>
  ROOT r = f32[@A,@B] abs(y)
}

no {
  x = f32[@A,@B] parameter(0)
  y = f32[@A,@B] add(x, x)<2:2>
  ROOT r = f32[@A,@B] sign(y)
}

ENTRY main {
  p = pred[] parameter(0)
  x = f32[@A,@B] parameter(1)<0:2>
  ROOT r = f32[@A,@B] conditional(p, x, x), true_computation=yes, false_computation=no
}
)",
                .sizes = kSizes,
                .max_cases = 300,
                .no_fallback = true});
}

TEST(Conditional, ByIndexWithTuplesAndAShardedPredicateSource) {
  VerifyFamily({.text = R"(
b0 {
  t = (f32[@A,@B], f32[@A]) parameter(0)
  x = f32[@A,@B] get-tuple-element(t), index=0
  y = f32[@A] get-tuple-element(t), index=1
  z = f32[@A,@B] broadcast(y), dimensions={0}
  ROOT r = f32[@A,@B] add(x, z)
}

b1 {
  x = f32[@A,@B] parameter(0)
  ROOT r = f32[@A,@B] multiply(x, x)
}

ENTRY main {
  i = s32[@A] parameter(0)<0:1>
  x = f32[@A,@B] parameter(1)<1:2>
  y = f32[@A] parameter(2)<2:1>
  one = s32[1] slice(i), slice={[1:2]}
  k = s32[] reshape(one)
  t = (f32[@A,@B], f32[@A]) tuple(x, y)
  ROOT r = f32[@A,@B] conditional(k, t, x), branch_computations={b0, b1}
}
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

// Each level calls the one below twice: inlined, that would be 2^14 copies, so
// import stops inlining and calls remain.
TEST(Call, CallsThatAreTooManyToInlineArePartitionedOnce) {
  constexpr int kLevels = 14;
  std::string text = R"(
f0 {
  x = s32[@A,@B] parameter(0)
  n = s32[@A,@B] negate(x)
  ROOT m = s32[@A,@B] add(n, n)<1:2>
}
)";
  for (int k = 1; k <= kLevels; ++k) {
    absl::StrAppend(&text, "\nf", k, " {\n  x = s32[@A,@B] parameter(0)\n",
                    "  a = s32[@A,@B] call(x), to_apply=f", k - 1, "\n",
                    "  b = s32[@A,@B] call(a), to_apply=f", k - 1, "\n",
                    "  ROOT r = s32[@A,@B] subtract(b, x)\n}\n");
  }
  absl::StrAppend(&text, "\nENTRY main {\n  x = s32[@A,@B] parameter(0)<0:2>\n",
                  "  c = s32[@A,@B] call(x), to_apply=f", kLevels,
                  "\n  ROOT r = s32[@A,@B] copy(c)<2:2>\n}\n");
  VerifyFamily({.text = text,
                .sizes = {{{'A', 4}, {'B', 3}}},
                .meshes = {{{2, 2}}},
                .max_cases = 5,
                .no_fallback = true});
  const auto p = PartitionText(Instantiate(text, {{'A', 4}, {'B', 3}}, {{2, 2}}, {"", "", ""}), {});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_GT(CountOpcode(**p, Opcode::kCall), 0);
}

TEST(Barrier, ValuesPassInTheirStates) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  y = f32[@A,@B] parameter(1)<1:2>
  s = f32[@A,@B] add(x, y)
  t = (f32[@A,@B], f32[@A,@B]) tuple(s, y)
  b = (f32[@A,@B], f32[@A,@B]) opt-barrier(t)
  u = f32[@A,@B] get-tuple-element(b), index=0
  v = f32[@A,@B] get-tuple-element(b), index=1
  m = f32[@A,@B] multiply(u, s)
  ROOT r = f32[@A,@B] subtract(m, v)<2:2>
)",
                .sizes = kSizes,
                .max_cases = 300,
                .no_fallback = true});
}

TEST(Tuples, NestedTuplesAsParametersAndResults) {
  VerifyFamily({.text = R"(
  p = (f32[@A,@B], (s32[@A], f32[@B])) parameter(0)
  x = f32[@A,@B] get-tuple-element(p), index=0
  q = (s32[@A], f32[@B]) get-tuple-element(p), index=1
  i = s32[@A] get-tuple-element(q), index=0
  c = f32[@A] convert(i)
  b = f32[@A,@B] broadcast(c), dimensions={0}
  r = f32[@A,@B] add(x, b)<0:2>
  n = s32[@A] negate(i)<1:1>
  t = (s32[@A], f32[@A,@B]) tuple(n, r)
  ROOT out = ((s32[@A], f32[@A,@B]), f32[@A,@B]) tuple(t, x)
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

}  // namespace
}  // namespace shardcall
