// SPDX-License-Identifier: Apache-2.0
// Sort and top-k: the sorted dimension is taken whole, batch dimensions stay
// sharded; padding never ranks.
#include <gtest/gtest.h>

#include "tests/support/program_family.h"

namespace shardcall {
namespace {

const std::vector<Sizes> kSizes = {
    {{'A', 8}, {'B', 4}}, {{'A', 10}, {'B', 7}}, {{'A', 5}, {'B', 3}}, {{'A', 1}, {'B', 8}}};

TEST(Sort, AlongADimensionThatMayBeSharded) {
  VerifyFamily({.text = R"(
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  ROOT r = f32[@A,@B] sort(x), dimensions={1}, to_apply=less<1:2>
}
)",
                .sizes = kSizes,
                .max_cases = 400});
}

TEST(Sort, KeysCarryValuesStably) {
  VerifyFamily({.text = R"(
less {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT
}

ENTRY main {
  k = s32[@A,@B] parameter(0)<0:2>
  v = f32[@A,@B] parameter(1)<1:2>
  ROOT r = (s32[@A,@B], f32[@A,@B]) sort(k, v), dimensions={0}, is_stable=true, to_apply=less
}
)",
                .sizes = kSizes,
                .max_cases = 400});
}

TEST(TopK, LargestOfEveryRow) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  t = (f32[@A,2], s32[@A,2]) topk(x), k=2, largest=true
  v = f32[@A,2] get-tuple-element(t), index=0
  i = s32[@A,2] get-tuple-element(t), index=1
  w = f32[@A,2] negate(v)<1:2>
  ROOT r = (f32[@A,2], s32[@A,2]) tuple(w, i)
)",
                .sizes = kSizes,
                .max_cases = 300});
}

}  // namespace
}  // namespace shardcall
