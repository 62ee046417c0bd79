// SPDX-License-Identifier: Apache-2.0
// Slice, pad, concatenate, reverse and dynamic-slice on sharded dimensions.
#include <gtest/gtest.h>

#include "tests/support/program_family.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {
    {{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 7}}, {{'A', 5}, {'B', 3}}, {{'A', 7}, {'B', 8}}};

TEST(Slice, PartOfADimension) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  ROOT r = f32[@(A-3),@B] slice(x), slice={[2:@(A-1)], [0:@B]}<1:2>
)",
                .sizes = kSizes,
                .max_cases = 500,
                .no_fallback = true});
}

TEST(Slice, HeadAndTail) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  h = f32[2,@B] slice(x), slice={[0:2], [0:@B]}<1:2>
  t = f32[@A,1] slice(x), slice={[0:@A], [@(B-1):@B]}<2:2>
  ROOT r = (f32[2,@B], f32[@A,1]) tuple(h, t)
)",
                .sizes = kSizes,
                .max_cases = 400,
                .no_fallback = true});
}

TEST(Slice, Strided) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  ROOT r = s32[@(A/2),@B] slice(x), slice={[1:@A:2], [0:@B]}<1:2>
)",
                .sizes = {{{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 3}}},
                .max_cases = 300,
                .no_fallback = true});
}

TEST(Pad, LowHighAndInterior) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  v = f32[] parameter(1)
  ROOT r = f32[@(A+3),@(B*2-1)] pad(x, v), padding=1_2x0_0_1<1:2>
)",
                .sizes = kSizes,
                .max_cases = 500});
}

TEST(Pad, NegativePaddingCuts) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  v = f32[] constant(9)
  ROOT r = f32[@(A-1),@(B+1)] pad(x, v), padding=-2_1x1_0<1:2>
)",
                .sizes = kSizes,
                .max_cases = 400,
                .no_fallback = true});
}

TEST(Concatenate, PiecesOfDifferentLengths) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  y = f32[3,@B] parameter(1)<1:2>
  ROOT r = f32[@(A*2+3),@B] concatenate(x, y, x), dimensions={0}<2:2>
)",
                .sizes = kSizes,
                .max_cases = 600,
                .no_fallback = true});
}

TEST(Concatenate, AlongTheLastDimension) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  y = f32[@A,@B] parameter(1)<1:2>
  ROOT r = f32[@A,@(B*2)] concatenate(x, y), dimensions={1}<2:2>
)",
                .sizes = kSizes,
                .max_cases = 400,
                .no_fallback = true});
}

TEST(Reverse, OneAndBothDimensions) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  a = f32[@A,@B] reverse(x), dimensions={0}<1:2>
  b = f32[@A,@B] reverse(x), dimensions={0,1}<2:2>
  ROOT r = (f32[@A,@B], f32[@A,@B]) tuple(a, b)
)",
                .sizes = kSizes,
                .max_cases = 500,
                .no_fallback = true});
}

// rotate: jnp.roll is a concatenation of two slices.
TEST(Concatenate, OfSlicesRotates) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  t = f32[@(A-2),@B] slice(x), slice={[2:@A], [0:@B]}
  h = f32[2,@B] slice(x), slice={[0:2], [0:@B]}
  ROOT r = f32[@A,@B] concatenate(t, h), dimensions={0}<1:2>
)",
                .sizes = kSizes,
                .max_cases = 300,
                .no_fallback = true});
}

TEST(DynamicSlice, IndicesAreClampedAsOnOneDevice) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  ROOT r = f32[2,@B] dynamic-slice(x, i, j), dynamic_slice_sizes={2,@B}<1:2>
)",
                .sizes = kSizes,
                .max_cases = 300});
}

TEST(DynamicSlice, InTwoDimensions) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  ROOT r = s32[3,2] dynamic-slice(x, i, j), dynamic_slice_sizes={3,2}<1:2>
)",
                .sizes = kSizes,
                .max_cases = 300});
}

}  // namespace
}  // namespace shardcall
