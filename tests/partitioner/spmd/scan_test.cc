// SPDX-License-Identifier: Apache-2.0
// Scan: along other dimensions on shards, if the body works element by element; along the scanned
// dimension in three phases, if the body is associative.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/partitioner/spmd/plan_testing.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {
    {{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 7}}, {{'A', 5}, {'B', 3}}, {{'A', 1}, {'B', 8}}};
const std::vector<std::string> kBothWays = {"", ", is_reverse=true"};

// Outputs are the sums with each element, and those without it.
const char kSums[] = R"(
step {
  x = s32[@B] parameter(0)
  c = s32[@B] parameter(1)
  s = s32[@B] add(x, c)
  two = s32[] constant(2)
  twos = s32[@B] broadcast(two), dimensions={}
  t = s32[@B] multiply(c, twos)
  ROOT r = (s32[@B], s32[@B], s32[@B]) tuple(s, t, s)
}

ENTRY main {
  x = s32[@A,@B] parameter(0)<0:2>
  c = s32[@B] parameter(1)<1:1>
  r = (s32[@A,@B], s32[@A,@B], s32[@B]) scan(x, c), dimensions={0}, num_carries=1,
      is_associative=ASSOCIATIVE, to_apply=step
  a = s32[@A,@B] get-tuple-element(r), index=0
  b = s32[@A,@B] get-tuple-element(r), index=1
  last = s32[@B] get-tuple-element(r), index=2
  a1 = s32[@A,@B] copy(a)<2:2>
  ROOT out = (s32[@A,@B], s32[@A,@B], s32[@B]) tuple(a1, b, last)
}
)";

std::string Scanned(const std::string& text, const std::string& more, bool associative = true) {
  return absl::StrReplaceAll(text,
                             {{"ASSOCIATIVE", absl::StrCat(associative ? "true" : "false", more)}});
}

TEST(Scan, SumsWithAndWithoutEachElement) {
  for (const std::string& way : kBothWays) {
    VerifyFamily({.text = Scanned(kSums, way), .sizes = kSizes, .max_cases = 500});
  }
}

TEST(Scan, ABodyThatIsNotAssociativeRunsOnShardsOfOtherDimensions) {
  for (const std::string& way : kBothWays) {
    VerifyFamily({.text = Scanned(kSums, way, false), .sizes = kSizes, .max_cases = 300});
  }
}

// Affine functions, one after another: what a linear recurrence is made of. Their order matters,
// and no reduction that is known makes them.
TEST(Scan, AffineFunctionsAreComposedInOrder) {
  const std::string text = R"(
step {
  a = s32[@B] parameter(0)
  b = s32[@B] parameter(1)
  c = s32[@B] parameter(2)
  d = s32[@B] parameter(3)
  ac = s32[@B] multiply(a, c)
  ad = s32[@B] multiply(a, d)
  e = s32[@B] add(ad, b)
  ROOT r = (s32[@B], s32[@B], s32[@B]) tuple(e, ac, e)
}

ENTRY main {
  a = s32[@A,@B] parameter(0)<0:2>
  b = s32[@A,@B] parameter(1)<1:2>
  c = s32[@B] parameter(2)
  d = s32[@B] parameter(3)
  ROOT r = (s32[@A,@B], s32[@B], s32[@B]) scan(a, b, c, d), dimensions={0}, num_carries=2,
      is_associative=ASSOCIATIVE, to_apply=step
}
)";
  for (const std::string& way : kBothWays) {
    VerifyFamily({.text = Scanned(text, way), .sizes = kSizes, .max_cases = 400});
  }
}

// A body that does not work element by element needs its other dimensions whole.
TEST(Scan, ProductsOfMatrices) {
  const std::string text = R"(
step {
  x = s32[3,3] parameter(0)
  c = s32[3,3] parameter(1)
  p = s32[3,3] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (s32[3,3], s32[3,3]) tuple(p, p)
}

ENTRY main {
  x = s32[3,@A,3] parameter(0)<0:3>
  c = s32[3,3] parameter(1)
  ROOT r = (s32[3,@A,3], s32[3,3]) scan(x, c), dimensions={1}, num_carries=1,
      is_associative=ASSOCIATIVE, to_apply=step
}
)";
  for (const std::string& way : kBothWays) {
    VerifyFamily({.text = Scanned(text, way), .sizes = kSizes, .max_cases = 300});
  }
}

const char kStep[] = R"(
step {
  x = f32[64] parameter(0)
  c = f32[64] parameter(1)
  s = f32[64] add(x, c)
  ROOT r = (f32[64], f32[64]) tuple(s, s)
}
)";

double BytesOfScan(const std::string& x, const std::string& c) {
  return BytesMoved(absl::StrCat(kStep, R"(
ENTRY main {
  x = f32[512,64] parameter(0), sharding=)",
                                 x, R"(
  c = f32[64] parameter(1), sharding=)",
                                 c, R"(
  ROOT r = (f32[512,64], f32[64]) scan(x, c), dimensions={0}, num_carries=1, is_associative=true,
      to_apply=step, sharding={)",
                                 x, ", ", c, "}\n}\n"));
}

TEST(Scan, SendsATotalOfEachShard) {
  EXPECT_EQ(BytesOfScan("{devices=[8,1]<=[8]}", "{replicated}"), 7 * 64 * 4);
}

TEST(Scan, SendsNothingAlongOtherDimensions) {
  EXPECT_EQ(BytesOfScan("{devices=[1,8]<=[8]}", "{devices=[8]<=[8]}"), 0);
}

}  // namespace
}  // namespace shardcall
