// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/sample/reduces_by_parts.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/ir/text/parser.h"

namespace shardcall {
namespace {

// Of the root of the entry.
bool OfText(std::string text) {
  const absl::StatusOr<Module> m = ParseModule(std::make_shared<const std::string>(std::move(text)),
                                               std::make_shared<Context>(), "test");
  EXPECT_TRUE(m.ok()) << m.status();
  return m.ok() && ReducesByParts(*m, m->comp(m->entry()).root);
}

// Of one value, combined by `root`, the last of the instructions `body` on x and y.
bool OfOne(const std::string& type, const std::string& init, const std::string& body) {
  std::string text = absl::StrReplaceAll(R"(HloModule m
f {
  x = T[] parameter(0)
  y = T[] parameter(1)
  BODY
}

ENTRY main {
  a = T[4,8] parameter(0)
  i = T[] constant(INIT)
  ROOT r = T[4] reduce(a, i), dimensions={1}, to_apply=f
}
)",
                                         {{"BODY", body}, {"INIT", init}});
  text = absl::StrReplaceAll(text, {{"T[", type + "["}});
  return OfText(text);
}

// Of several f32, all of which start at 0. `operands`: of the three arrays a, zeros and ones.
bool OfSeveral(int n, const std::string& operands, const std::string& body) {
  std::string parameters, starts, shape;
  for (int k = 0; k < 2 * n; ++k) {
    absl::StrAppend(&parameters, "  p", k, " = f32[] parameter(", k, ")\n");
  }
  for (int k = 0; k < n; ++k) {
    absl::StrAppend(&starts, ", zero");
    absl::StrAppend(&shape, k == 0 ? "" : ", ", "f32[4]");
  }
  const std::string text = absl::StrCat(
      "HloModule m\nf {\n", parameters, body, "\n}\n\nENTRY main {\n",
      "  a = f32[4,8] parameter(0)\n  zero = f32[] constant(0)\n",
      "  zeros = f32[4,8] broadcast(zero), dimensions={}\n",
      "  one = f32[] constant(1)\n  ones = f32[4,8] broadcast(one), dimensions={}\n",
      "  ROOT r = (", shape, ") reduce(", operands, starts, "), dimensions={1}, to_apply=f\n}\n");
  return OfText(text);
}

const char kLogAddExp[] = R"(high = f32[] maximum(x, y)
  d = f32[] subtract(x, y)
  size = f32[] abs(d)
  down = f32[] negate(size)
  e = f32[] exponential(down)
  more = f32[] log-plus-one(e)
  both = f32[] add(high, more)
  sum = f32[] add(x, y)
  same = pred[] compare(d, d), direction=NE
  ROOT r = f32[] select(same, sum, both))";

TEST(ReducesByParts, AMonoidOfTheProgramsOwn) {
  EXPECT_TRUE(OfOne("f32", "-inf", kLogAddExp));
  // 1 + r = (1 + x) (1 + y)
  for (const char* type : {"f32", "s32", "u8", "bf16"}) {
    EXPECT_TRUE(
        OfOne(type, "0", "p = T[] multiply(x, y)\n  s = T[] add(x, y)\n  ROOT r = T[] add(s, p)"))
        << type;
  }
  EXPECT_TRUE(
      OfOne("pred", "false", "n = pred[] compare(x, y), direction=NE\n  ROOT r = pred[] copy(n)"));
}

TEST(ReducesByParts, NotIfTheInitialValueIsNotNeutral) {
  EXPECT_FALSE(OfOne("f32", "0", kLogAddExp));
  EXPECT_FALSE(OfOne(
      "s32", "1", "p = s32[] multiply(x, y)\n  s = s32[] add(x, y)\n  ROOT r = s32[] add(s, p)"));
  // Neutral on the left only.
  EXPECT_FALSE(
      OfOne("f32", "0",
            "h = f32[] constant(0.5)\n  p = f32[] multiply(h, x)\n  ROOT r = f32[] add(p, y)"));
}

// A shard without an element would begin with what is no number.
TEST(ReducesByParts, NotIfTwoInitialValuesMakeAnotherOne) {
  EXPECT_FALSE(OfOne("f32", "-inf", R"(high = f32[] maximum(x, y)
  low = f32[] minimum(x, y)
  d = f32[] subtract(low, high)
  e = f32[] exponential(d)
  more = f32[] log-plus-one(e)
  ROOT r = f32[] add(high, more))"));
}

TEST(ReducesByParts, NotIfTheOrderMatters) {
  // Neutral on both sides, but not associative.
  EXPECT_FALSE(OfOne("f32", "0", R"(p = f32[] multiply(x, y)
  q = f32[] multiply(p, x)
  s = f32[] add(x, y)
  ROOT r = f32[] add(s, q))"));
  EXPECT_FALSE(OfOne("f32", "0", "ROOT r = f32[] subtract(x, y)"));
}

TEST(ReducesByParts, NotOfTypesThatHaveNoSamples) {
  EXPECT_FALSE(
      OfOne("c64", "(0, 0)",
            "p = c64[] multiply(x, y)\n  s = c64[] add(x, y)\n  ROOT r = c64[] add(s, p)"));
  // This type has neither zeros nor negative numbers.
  EXPECT_FALSE(OfOne("f8e8m0fnu", "1", "p = T[] multiply(x, y)\n  ROOT r = T[] copy(p)"));
}

TEST(ReducesByParts, SeveralValuesTogether) {
  // Means, squares around them, and counts: a sum of squares by Chan's formula.
  const char kMoments[] = R"(
  n = f32[] add(p2, p5)
  one = f32[] constant(1)
  m = f32[] maximum(n, one)
  u = f32[] multiply(p0, p2)
  v = f32[] multiply(p3, p5)
  w = f32[] add(u, v)
  mean = f32[] divide(w, m)
  d = f32[] subtract(p0, p3)
  dd = f32[] multiply(d, d)
  c = f32[] multiply(p2, p5)
  dc = f32[] multiply(dd, c)
  between = f32[] divide(dc, m)
  within = f32[] add(p1, p4)
  squares = f32[] add(within, between)
  ROOT t = (f32[], f32[], f32[]) tuple(mean, squares, n))";
  EXPECT_TRUE(OfSeveral(3, "a, zeros, ones", kMoments));
  EXPECT_FALSE(OfSeveral(3, "a, a, a", kMoments)) << "the mean of half an element is lost";
  const char kSums[] = R"(
  a = f32[] add(p0, p2)
  p = f32[] multiply(p1, p3)
  s = f32[] add(p1, p3)
  b = f32[] add(s, p)
  ROOT t = (f32[], f32[]) tuple(a, b))";
  EXPECT_TRUE(OfSeveral(2, "a, a", kSums));
}

// Nothing is evaluated that may never end, or fill the memory.
TEST(ReducesByParts, NotIfTheComputationMayTakeLong) {
  const std::string adds = "p = f32[] multiply(x, y)\n  s = f32[] add(x, y)\n";
  EXPECT_FALSE(OfOne("f32", "0", adds + R"(  b = f32[1000000,1000000] broadcast(p), dimensions={}
  c = f32[1,1] slice(b), slice={[0:1], [0:1]}
  q = f32[] reshape(c)
  ROOT r = f32[] add(s, q))"));
  const std::string loop = R"(HloModule m
forever {
  v = f32[] parameter(0)
  ROOT t = pred[] constant(true)
}

same {
  ROOT v = f32[] parameter(0)
}

f {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  p = f32[] multiply(x, y)
  w = f32[] while(p), condition=forever, body=same
  s = f32[] add(x, y)
  ROOT r = f32[] add(s, w)
}

ENTRY main {
  a = f32[4,8] parameter(0)
  i = f32[] constant(0)
  ROOT r = f32[4] reduce(a, i), dimensions={1}, to_apply=f
}
)";
  EXPECT_FALSE(OfText(loop));
}

TEST(ReducesByParts, OnlyFromConstants) {
  const char kText[] = R"(HloModule m
f {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  p = f32[] multiply(x, y)
  s = f32[] add(x, y)
  ROOT r = f32[] add(s, p)
}

ENTRY main {
  a = f32[4,8] parameter(0)
  i = f32[] parameter(1)
  ROOT r = f32[4] reduce(a, i), dimensions={1}, to_apply=f
}
)";
  EXPECT_FALSE(OfText(kText));
}

TEST(ReducesByParts, TheWindowsOfACumulativeReduction) {
  const auto of_windows = [](const std::string& init) {
    return OfText(absl::StrCat(
        "HloModule m\nf {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ", kLogAddExp,
        "\n}\n\nENTRY main {\n  a = f32[4,8] parameter(0)\n", "  i = f32[] constant(", init, ")\n",
        "  ROOT r = f32[4,8] reduce-window(a, i), window={size=1x8 pad=0_0x7_0}, ",
        "to_apply=f\n}\n"));
  };
  EXPECT_TRUE(of_windows("-inf"));
  EXPECT_FALSE(of_windows("0"));
}

}  // namespace
}  // namespace shardcall
