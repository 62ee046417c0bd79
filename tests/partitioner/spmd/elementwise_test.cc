// SPDX-License-Identifier: Apache-2.0
// Elementwise ops, constants, iota, select, compare and convert under every
// sharding.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {{{'A', 8}, {'B', 4}},
                                   {{'A', 10}, {'B', 7}},
                                   {{'A', 3}, {'B', 5}},
                                   {{'A', 1}, {'B', 8}},
                                   {{'A', 7}, {'B', 1}}};

TEST(Elementwise, BinaryOpsMeetOperandsInDifferentShardings) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  y = f32[@A,@B] parameter(1)<1:2>
  s = f32[@A,@B] add(x, y)
  ROOT r = f32[@A,@B] multiply(s, x)<2:2>
)",
                .sizes = kSizes,
                .no_fallback = true});
}

TEST(Elementwise, IntermediateConstraintsReshardInTheMiddle) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  n = s32[@A,@B] negate(x)<1:2>
  m = s32[@A,@B] maximum(n, x)
  ROOT r = s32[@A,@B] subtract(m, n)<2:2>
)",
                .sizes = kSizes,
                .no_fallback = true});
}

TEST(Elementwise, SelectCompareConvertAndClampOfMixedTypes) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  y = f32[@A,@B] parameter(1)<1:2>
  xf = f32[@A,@B] convert(x)
  p = pred[@A,@B] compare(xf, y), direction=LT
  one = f32[] constant(1)
  c = f32[@A,@B] clamp(one, y, xf)
  ROOT r = f32[@A,@B] select(p, c, y)<2:2>
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

TEST(Elementwise, DivisionByPaddingDisturbsNoValidElement) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  y = s32[@A,@B] parameter(1)<1:2>
  two = s32[] constant(2)
  twos = s32[@A,@B] broadcast(two), dimensions={}
  q = s32[@A,@B] divide(y, twos)
  m = s32[@A,@B] remainder(y, twos)
  s = s32[@A,@B] add(q, m)
  sf = f32[@A,@B] convert(s)
  ROOT r = f32[@A,@B] add(x, sf)<2:2>
)",
                .sizes = kSizes,
                .max_cases = 100,
                .no_fallback = true});
}

TEST(Elementwise, IotaCountsFromTheTileOfItsDevice) {
  for (const char* type : {"s32", "f32", "u8", "bf16", "s64", "c64"}) {
    SCOPED_TRACE(type);
    const std::string text = absl::StrReplaceAll(R"(
  i = T[@A,@B] iota(), iota_dimension=0<0:2>
  j = T[@A,@B] iota(), iota_dimension=1<1:2>
  ROOT r = T[@A,@B] add(i, j)<2:2>
)",
                                                 {{"T[", absl::StrCat(type, "[")}});
    VerifyFamily({.text = text, .sizes = kSizes, .max_cases = 60, .no_fallback = true});
  }
}

TEST(Elementwise, ConstantsAreCutByTheirUsers) {
  VerifyFamily({.text = R"(
  x = f32[5,3] parameter(0)<0:2>
  c = f32[5,3] constant({{1,2,3},{4,5,6},{7,8,9},{10,11,12},{13,14,15}})<1:2>
  ROOT r = f32[5,3] add(x, c)<2:2>
)",
                .max_cases = 200,
                .no_fallback = true});
}

TEST(Elementwise, ScalarsAndRankThree) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B,2] parameter(0)<0:3>
  s = f32[] parameter(1)<1:0>
  b = f32[@A,@B,2] broadcast(s), dimensions={}
  ROOT r = f32[@A,@B,2] multiply(x, b)<2:3>
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

TEST(Elementwise, AnnotatedResultsOfTuplesAreReshardedEach) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  a = f32[@A,@B] add(x, x)<1:2>
  m = f32[@A,@B] multiply(a, x)<2:2>
  ROOT t = (f32[@A,@B], f32[@A,@B], f32[@A,@B]) tuple(a, m, x)
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
}

TEST(Elementwise, WithoutPropagationOnlyWhatIsAnnotatedIsSharded) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  a = f32[@A,@B] add(x, x)
  ROOT m = f32[@A,@B] multiply(a, x)<1:2>
)",
                .sizes = kSizes,
                .max_cases = 100,
                .options = {.propagate = false},
                .no_fallback = true});
}

}  // namespace
}  // namespace shardcall
