// SPDX-License-Identifier: Apache-2.0
// Open results that are sums over devices get the sharding of the parameter of their shape.
#include "shardcall/partitioner/propagation/summed_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/partitioner/propagation/propagation_testing.h"

namespace shardcall {
namespace {

using testing::Eq;
using testing::HasSubstr;

// x^T y, of a batch over `a`, and a weight in the shape of that.
std::string Gradient(const std::string& weight, const std::string& rest) {
  return absl::StrCat("x = f32[16,8] parameter(0), @[{'a'}, {}]\n",
                      "y = f32[16,12] parameter(1), @[{'a'}, {}]\n",
                      "w = f32[8,12] parameter(2), @", weight, "\n",
                      "g = f32[8,12] dot(x, y), lhs_contracting_dims={0}, "
                      "rhs_contracting_dims={0}\n",
                      rest);
}

TEST(SummedResults, AreShardedAsTheParameterOfTheirShape) {
  for (const char* weight : {"[{'a'}, {}]", "[{}, {'a'}]", "[{'a':(1)2}, {}]"}) {
    const Propagated p =
        PropagateEntry(Gradient(weight, "ROOT r = (f32[8,12], f32[8,12]) tuple(g, w)\n"));
    EXPECT_EQ(p.Of("g"), p.Of("w")) << weight;
    EXPECT_EQ(p.result.outputs[0]->ToString(), p.Of("w")) << weight;
    EXPECT_THAT(p.Explain("g"), HasSubstr("argument 2 -> %g, a sum in the shape of that"));
  }
}

TEST(SummedResults, KeepAxesThatTheyHave) {
  const Propagated p = PropagateEntry(R"(
x = f32[16,8] parameter(0), @[{'a'}, {}]
y = f32[16,12] parameter(1), @[{'a'}, {'b'}]
w = f32[8,12] parameter(2), @[{'a'}, {'b'}]
g = f32[8,12] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
ROOT r = (f32[8,12], f32[8,12]) tuple(g, w)
)");
  EXPECT_THAT(p.Of("g"), Eq(R"([{"a"}, {"b"}])"));
}

TEST(SummedResults, ThroughWhatPassesTheirDimensionsOn) {
  const Propagated p = PropagateEntry(R"(
x = f32[16,8] parameter(0), @[{'a'}, {}]
y = f32[16,12] parameter(1), @[{'a'}, {}]
w = bf16[8,12] parameter(2), @[{'a'}, {}]
g = f32[12,8] dot(y, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
t = f32[8,12] transpose(g), dimensions={1,0}
c = f32[] constant(0.25)
s = f32[8,12] broadcast(c), dimensions={}
m = f32[8,12] multiply(s, t)
h = bf16[8,12] convert(m)
ROOT r = (bf16[8,12], bf16[8,12]) tuple(h, w)
)");
  EXPECT_THAT(p.Of("g"), Eq(R"([{}, {"a"}])"));
  for (const char* value : {"t", "m", "h"}) EXPECT_THAT(p.Of(value), Eq(R"([{"a"}, {}])"));
}

TEST(SummedResults, BothSumsOfASum) {
  const Propagated p = PropagateEntry(R"(
x = f32[16,8] parameter(0), @[{'a'}, {}]
y = f32[16,12] parameter(1), @[{'a'}, {}]
w = f32[8,12] parameter(2), @[{'a'}, {}]
g = f32[8,12] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
z = f32[16,12] negate(y)
h = f32[8,12] dot(x, z), lhs_contracting_dims={0}, rhs_contracting_dims={0}
s = f32[8,12] add(g, h)
ROOT r = (f32[8,12], f32[8,12]) tuple(s, w)
)");
  for (const char* value : {"g", "h", "s"}) EXPECT_THAT(p.Of(value), Eq(R"([{"a"}, {}])"));
}

// The sum has one of the axes only, and the operand cannot have it twice.
TEST(SummedResults, StayWholeWhereASumHasSomeOfTheAxes) {
  for (const char* weight : {"[{'a','b'}, {}]", "[{'b','a'}, {}]", "[{'b'}, {'a'}]"}) {
    const Propagated p = PropagateEntry(absl::StrCat(R"(
x = f32[16,8] parameter(0), @[{'b'}, {}]
y = f32[16,12] parameter(1), @[{'b'}, {}]
n = f32[16,8] negate(x)
m = f32[16,12] negate(y)
g = f32[8,12] dot(n, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}
w = f32[8,12] parameter(2), @)",
                                                     weight, R"(
ROOT r = (f32[8,12], f32[8,12]) tuple(g, w)
)"));
    EXPECT_FALSE(p.result.outputs[0]->HasShardedDim()) << weight;
  }
}

TEST(SummedResults, StayWholeWithoutSuchAParameter) {
  // No axes, axes of another than the sum, another shape.
  for (const char* weight : {"[{}, {}]", "[{'b'}, {}]"}) {
    const Propagated p =
        PropagateEntry(Gradient(weight, "ROOT r = (f32[8,12], f32[8,12]) tuple(g, w)\n"));
    EXPECT_FALSE(p.result.outputs[0]->HasShardedDim()) << weight;
  }
  const Propagated p = PropagateEntry(R"(
x = f32[16,8] parameter(0), @[{'a'}, {}]
y = f32[16,12] parameter(1), @[{'a'}, {}]
w = f32[12,8] parameter(2), @[{'a'}, {}]
g = f32[8,12] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
ROOT r = (f32[8,12], f32[12,8]) tuple(g, w)
)");
  EXPECT_FALSE(p.result.outputs[0]->HasShardedDim());
}

TEST(SummedResults, StayWholeWhereOthersUseThemOrAnnotationsSaySo) {
  for (const char* rest :
       {"n = f32[8,12] negate(g)\nROOT r = (f32[8,12], f32[8,12]) tuple(g, n)\n",
        "n = f32[8,12] negate(g), @[{}, {}]\nROOT r = (f32[8,12], f32[8,12]) tuple(n, w)\n"}) {
    const Propagated p = PropagateEntry(Gradient("[{'a'}, {}]", rest));
    EXPECT_FALSE(p.result.outputs[0]->HasShardedDim()) << rest;
  }
  const Propagated closed = PropagateModule(
      EntryModule(Gradient("[{'a'}, {}]", "ROOT r = (f32[8,12], f32[8,12]) tuple(g, w)\n"),
                  "num_partitions=8"));
  EXPECT_FALSE(closed.result.outputs[0]->HasShardedDim());
}

}  // namespace
}  // namespace shardcall
