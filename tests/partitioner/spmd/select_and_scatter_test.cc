// SPDX-License-Identifier: Apache-2.0
// Select-and-scatter, the gradient of max poolings, over sharded dimensions.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

std::string SelectAndScatter(const std::string& window, const std::string& windows) {
  return absl::StrCat(R"(
ge {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE
}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[@A,@B] parameter(0)<0:2>
  g = f32[)",
                      windows, R"(] parameter(1)<1:2>
  init = f32[] constant(0)
  ROOT r = f32[@A,@B] select-and-scatter(x, g, init), window={)",
                      window, R"(}, select=ge, scatter=add<2:2>
}
)");
}

TEST(SelectAndScatter, WindowsSideBySide) {
  VerifyFamily({.text = SelectAndScatter("size=2x1 stride=2x1", "@(A/2),@B"),
                .sizes = {{{'A', 16}, {'B', 4}}, {{'A', 12}, {'B', 3}}, {{'A', 14}, {'B', 5}}},
                .max_cases = 200});
}
TEST(SelectAndScatter, WindowsThatOverlap) {
  VerifyFamily({.text = SelectAndScatter("size=3x1 stride=2x1", "@(A-3/2+1),@B"),
                .sizes = {{{'A', 17}, {'B', 4}}, {{'A', 13}, {'B', 3}}, {{'A', 16}, {'B', 5}}},
                .max_cases = 200});
  VerifyFamily({.text = SelectAndScatter("size=5x2", "@(A-4),@(B-1)"),
                .sizes = {{{'A', 16}, {'B', 8}}, {{'A', 13}, {'B', 6}}},
                .max_cases = 150});
}
TEST(SelectAndScatter, WindowsWithGaps) {
  VerifyFamily({.text = SelectAndScatter("size=1x1 stride=3x1", "@(A-1/3+1),@B"),
                .sizes = {{{'A', 24}, {'B', 4}}, {{'A', 13}, {'B', 3}}},
                .max_cases = 150});
}
TEST(SelectAndScatter, Padded) {
  VerifyFamily({.text = SelectAndScatter("size=3x1 stride=2x1 pad=1_1x0_0", "@(A-1/2+1),@B"),
                .sizes = {{{'A', 16}, {'B', 4}}, {{'A', 13}, {'B', 3}}, {{'A', 6}, {'B', 5}}},
                .max_cases = 200});
  VerifyFamily({.text = SelectAndScatter("size=3x2 pad=1_1x1_0", "@A,@B"),
                .sizes = {{{'A', 16}, {'B', 8}}, {{'A', 13}, {'B', 6}}, {{'A', 7}, {'B', 3}}},
                .max_cases = 200});
  VerifyFamily({.text = SelectAndScatter("size=4x3 stride=2x1 pad=2_1x2_2", "@(A-1/2+1),@(B+2)"),
                .sizes = {{{'A', 16}, {'B', 8}}, {{'A', 13}, {'B', 6}}},
                .max_cases = 200});
}
// Padding is not selected, even where all that a window sees is equal, infinite or no number.
TEST(SelectAndScatter, PaddingIsNeverSelected) {
  for (const char* values : {"-inf", "nan", "3"}) {
    VerifyFamily({.text = absl::StrCat(R"(
le {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LE
}

gt {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GT
}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  c = f32[] constant()",
                                       values, R"()
  p = pred[@A,3] parameter(0)<0:2>
  y = f32[@A,3] parameter(1)<0:2>
  all = f32[@A,3] broadcast(c), dimensions={}
  x = f32[@A,3] select(p, all, y)
  g = f32[@(A-1/2+1),3] parameter(2)<1:2>
  two = f32[] constant(2)
  r0 = f32[@A,3] select-and-scatter(x, g, two), window={size=3x1 stride=2x1 pad=1_1x0_0}, select=le, scatter=add<0:2>
  r1 = f32[@A,3] select-and-scatter(x, g, two), window={size=3x1 stride=2x1 pad=1_1x0_0}, select=gt, scatter=add<0:2>
  ROOT t = (f32[@A,3], f32[@A,3]) tuple(r0, r1)
}
)"),
                  .sizes = {{{'A', 16}}, {{'A', 13}}},
                  .max_cases = 60});
  }
}
TEST(SelectAndScatter, PaddedSendsWhatWindowsSeeBeyondTheShard) {
  const std::string text =
      Instantiate(SelectAndScatter("size=3x1 stride=2x1 pad=1_1x0_0", "@(A-1/2+1),@B"),
                  {{'A', 64}, {'B', 10}}, TestMesh{{8}},
                  {", sharding={devices=[8,1]<=[8]}", ", sharding={devices=[8,1]<=[8]}",
                   ", sharding={devices=[8,1]<=[8]}"});
  // A row from before, two from behind, and what the window over them scatters.
  TextOptions only_bytes;
  only_bytes.spmd.cost.latency = 1e-15;
  const auto p = PartitionText(text, only_bytes);
  ASSERT_TRUE(p.ok()) << p.status();
  double bytes = 0;
  for (const CollectiveRecord& r : (*p)->local.collectives) bytes += r.bytes_moved;
  EXPECT_EQ(bytes, 4 * 7.0 / 8 * 10 * 4);
}
TEST(SelectAndScatter, AlignedWindowsSendNothing) {
  const std::string text = Instantiate(
      SelectAndScatter("size=2x1 stride=2x1", "@(A/2),@B"), {{'A', 64}, {'B', 10}}, TestMesh{{8}},
      {", sharding={devices=[8,1]<=[8]}", ", sharding={devices=[8,1]<=[8]}",
       ", sharding={devices=[8,1]<=[8]}"});
  const auto p = PartitionText(text, {});
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_TRUE((*p)->local.collectives.empty());
}

}  // namespace
}  // namespace shardcall
