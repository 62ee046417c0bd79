// SPDX-License-Identifier: Apache-2.0
// Slice, pad, concatenate, reverse and dynamic-slice on sharded dimensions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "tests/partitioner/spmd/plan_testing.h"
#include "tests/support/program_family.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::Not;

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

TEST(Slice, StridedInBothDimensions) {
  VerifyFamily({.text = R"(
  x = s32[@A,@B] parameter(0)<0:2>
  a = s32[@(A/2),@(B/4)] slice(x), slice={[1:@A:2], [2:@B:4]}<1:2>
  b = s32[@(A/4),@(B-3)] slice(x), slice={[@(A/2):@A:2], [1:@(B-2)]}<2:2>
  ROOT r = (s32[@(A/2),@(B/4)], s32[@(A/4),@(B-3)]) tuple(a, b)
)",
                .sizes = {{{'A', 16}, {'B', 8}}, {{'A', 12}, {'B', 16}}},
                .max_cases = 300,
                .no_fallback = true});
}

// What lies between strides is not sent, and what is not taken of a dimension is not sent along
// another.
TEST(Slice, SendsOnlyRowsThatAreTaken) {
  // Of 64 rows that are taken, seven shards get their eight from others.
  EXPECT_EQ(BytesMoved(R"(
  x = f32[1024,64] parameter(0), sharding={devices=[8,1]<=[8]}
  ROOT r = f32[64,64] slice(x), slice={[512:1024:8], [0:64]}, sharding={devices=[8,1]<=[8]}
)"),
            7 * 8 * 64 * 4 / 8);
  const std::string of_both = R"(
  x = f32[256,64] parameter(0), sharding={devices=[4,2]<=[8]}
  ROOT r = f32[128,2] slice(x), slice={[128:256], [0:2]}, sharding={devices=[4,2]<=[8]}
)";
  // One column each goes to the second shard of columns, and then that column of half of the rows.
  EXPECT_EQ(BytesMoved(of_both), 64 * 4 / 2 + 32 * 4 * 3 / 4);
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

TEST(Pad, InteriorAtAnyPhase) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  v = f32[] parameter(1)
  r0 = f32[@(A*2+2),@B] pad(x, v), padding=1_2_1x0_0<1:2>
  r1 = f32[@(A*3-2),@(B*2+1)] pad(x, v), padding=0_0_2x1_1_1<1:2>
  r2 = f32[@(A*3-4),@B] pad(x, v), padding=-2_0_2x0_0<1:2>
  ROOT t = (f32[@(A*2+2),@B], f32[@(A*3-2),@(B*2+1)], f32[@(A*3-4),@B]) tuple(r0, r1, r2)
)",
                .sizes = kSizes,
                .max_cases = 200,
                .no_fallback = true});
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

// Whole shards change places, once for all dimensions and for the order in which they are wanted.
TEST(Reverse, ShardsChangePlacesInOnePermute) {
  const auto reversed = [](absl::string_view from, absl::string_view to) {
    return absl::StrCat("  x = f32[4096,1024] parameter(0), sharding=", from,
                        "\n  ROOT r = f32[4096,1024] reverse(x), dimensions={0,1}, sharding=", to,
                        "\n");
  };
  const double shard = 4096 * 1024 * 4 / 8.0;
  EXPECT_EQ(BytesMoved(reversed("{devices=[4,2]<=[8]}", "{devices=[4,2]<=[8]}")), shard);
  EXPECT_EQ(BytesMoved(reversed("{devices=[8,1]<=[8]}", "{devices=[8,1]<=[4,2]T(1,0)}")), shard);
  EXPECT_EQ(BytesMoved(reversed("{devices=[8,1]<=[8]}", "{devices=[8,1]<=[8]}")), shard);
}

// What pads the last shard is first then, and is shifted out.
TEST(Reverse, ShardsChangePlacesAndAreShifted) {
  const auto reversed = [](int rows, int columns, absl::string_view from, absl::string_view to) {
    return absl::StrCat("  x = f32[", rows, ",", columns, "] parameter(0), sharding=", from,
                        "\n  ROOT r = f32[", rows, ",", columns,
                        "] reverse(x), dimensions={0,1}, sharding=", to, "\n");
  };
  const std::string both = "{devices=[4,2]<=[8]}";
  EXPECT_EQ(BytesMoved(reversed(4094, 1023, both, both)),
            1024 * 512 * 4 + 2 * 512 * 4 * 3 / 4 + 1024 * 4 / 2);
  // A permute of the reshard is a part of that of the shards.
  EXPECT_EQ(BytesMoved(reversed(16383, 8, "{devices=[8,1]<=[8]}", "{devices=[8,1]<=[4,2]T(1,0)}")),
            2048 * 8 * 4 + 8 * 4 * 7 / 8);
}

TEST(Reverse, OfAnOddNumberOfShardsOneStays) {
  EXPECT_EQ(BytesMoved(R"(
  x = f32[15] parameter(0), sharding={devices=[3]<=[3]}
  ROOT r = f32[15] reverse(x), dimensions={0}, sharding={devices=[3]<=[3]}
)",
                       3),
            5 * 4 * 2 / 3.0);
}

// As in a scan from the end: what is between the reverses is done mirrored.
TEST(Reverse, OfWhatIsDoneFromTheEnd) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  z = f32[] constant(0)
  a = f32[@A,@B] reverse(x), dimensions={0}
  h = f32[@(A-1),@B] slice(a), slice={[0:@(A-1)], [0:@B]}
  p = f32[@A,@B] pad(h, z), padding=1_0x0_0
  s = f32[@A,@B] add(a, p)
  t = f32[@(A-1),@B] slice(s), slice={[1:@A], [0:@B]}
  e = f32[1,@B] slice(a), slice={[0:1], [0:@B]}
  c = f32[@A,@B] concatenate(e, t), dimensions={0}
  ROOT r = f32[@A,@B] reverse(c), dimensions={0}<1:2>
)",
                .sizes = kSizes,
                .max_cases = 300,
                .no_fallback = true});
}

TEST(Reverse, NothingIsSentForThoseThatCancel) {
  EXPECT_EQ(BytesMoved(R"(
  x = f32[1024,4] parameter(0), sharding={devices=[8,1]<=[8]}
  a = f32[1024,4] reverse(x), dimensions={0}
  s = f32[1024,4] exponential(a)
  ROOT r = f32[1024,4] reverse(s), dimensions={0}, sharding={devices=[8,1]<=[8]}
)"),
            0);
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

std::string RollOfSharded(int rows) {
  return absl::StrCat(R"(
  x = f32[64,10] parameter(0), sharding={devices=[8,1]<=[8]}
  t = f32[)",
                      rows, ",10] slice(x), slice={[", 64 - rows, ":64], [0:10]}\n  h = f32[",
                      64 - rows, ",10] slice(x), slice={[0:", 64 - rows, R"(], [0:10]}
  ROOT r = f32[64,10] concatenate(t, h), dimensions={0}, sharding={devices=[8,1]<=[8]}
)");
}

// Each device sends the rows that the next ones lack, once; shards have 8 rows of 40 bytes.
TEST(Concatenate, OfSlicesSendsEachRowOnce) {
  EXPECT_EQ(BytesMoved(RollOfSharded(1)), 40);
  EXPECT_EQ(BytesMoved(RollOfSharded(5)), 5 * 40);
  EXPECT_EQ(BytesMoved(RollOfSharded(16)), 8 * 40);
  EXPECT_EQ(BytesMoved(RollOfSharded(61)), 3 * 40);
}

// The end and the beginning are neighbours: the rows from one of them go in one message, and each
// row is where it belongs.
TEST(Concatenate, OfSlicesTurnsARing) {
  for (const auto& [rows, messages] :
       std::map<int, int>{{1, 1}, {5, 1}, {8, 1}, {16, 1}, {61, 1}, {11, 2}}) {
    const auto p = Done(RollOfSharded(rows), 8);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(p->local.collectives.size(), static_cast<size_t>(messages)) << rows;
    EXPECT_THAT(PrintModule(p->local.module), Not(HasSubstr("select("))) << rows;
  }
}

// Slices of other values, gaps, and rows that come twice are no rotation.
TEST(Concatenate, OfOtherSlicesIsNoRotation) {
  for (const char* pieces : {
           "  t = f32[@(A-2),@B] slice(y), slice={[2:@A], [0:@B]}\n"
           "  h = f32[2,@B] slice(x), slice={[0:2], [0:@B]}\n",
           "  t = f32[@(A-2),@B] slice(x), slice={[2:@A], [0:@B]}\n"
           "  h = f32[2,@B] slice(x), slice={[1:3], [0:@B]}\n",
           "  t = f32[@(A-2),@B] slice(x), slice={[0:@(A-2)], [0:@B]}\n"
           "  h = f32[2,@B] slice(x), slice={[0:2], [0:@B]}\n",
       }) {
    VerifyFamily({.text = absl::StrCat("  x = f32[@A,@B] parameter(0)<0:2>\n"
                                       "  y = f32[@A,@B] parameter(1)<0:2>\n",
                                       pieces,
                                       "  ROOT r = f32[@A,@B] concatenate(t, h), "
                                       "dimensions={0}<1:2>\n"),
                  .sizes = kSizes,
                  .max_cases = 120});
  }
}

TEST(Concatenate, OfPadsSlicesAndOthers) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  y = f32[@A,@B] parameter(1)
  v = f32[] constant(2)
  p = f32[@(A+1),@B] pad(x, v), padding=3_-2x0_0
  s = f32[@(A-3),@B] slice(x), slice={[2:@(A-1)], [0:@B]}
  ROOT r = f32[@(A*3-2),@B] concatenate(p, s, y), dimensions={0}<1:2>
)",
                .sizes = kSizes,
                .max_cases = 200});
}

TEST(Slice, OfPadsAndSlicesShifts) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  v = f32[] constant(2)
  p = f32[@(A+2),@B] pad(x, v), padding=2_0x0_0
  q = f32[@(A+1),@(B+2)] pad(x, v), padding=-1_2x1_1
  s = f32[@(A-1),@B] slice(x), slice={[1:@A], [0:@B]}
  r0 = f32[@A,@B] slice(p), slice={[0:@A], [0:@B]}<1:2>
  r1 = f32[@(A/2+1),@B] slice(p), slice={[1:@(A+2):2], [0:@B]}<1:2>
  r2 = f32[@A,@(B+1)] slice(q), slice={[1:@(A+1)], [1:@(B+2)]}<1:2>
  r3 = f32[@(A-2),@B] slice(s), slice={[1:@(A-1)], [0:@B]}<1:2>
  ROOT t = (f32[@A,@B], f32[@(A/2+1),@B], f32[@A,@(B+1)], f32[@(A-2),@B]) tuple(r0, r1, r2, r3)
)",
                .sizes = {{{'A', 16}, {'B', 8}}, {{'A', 13}, {'B', 6}}, {{'A', 7}, {'B', 3}}},
                .max_cases = 200});
}

TEST(Pad, OfSlicesShifts) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  v = f32[] parameter(1)
  s = f32[@(A-1),@B] slice(x), slice={[0:@(A-1)], [0:@B]}
  w = f32[@(A-2),@(B-1)] slice(x), slice={[2:@A], [1:@B]}
  r0 = f32[@A,@B] pad(s, v), padding=1_0x0_0<1:2>
  r1 = f32[@A,@B] pad(w, v), padding=0_2x0_1<1:2>
  r2 = f32[@(A+2),@(B+1)] pad(s, v), padding=-1_4x0_1<1:2>
  ROOT t = (f32[@A,@B], f32[@A,@B], f32[@(A+2),@(B+1)]) tuple(r0, r1, r2)
)",
                .sizes = kSizes,
                .max_cases = 200});
}

// A shift by one row, as of the tokens that a decoder reads: one row of 40 bytes.
TEST(Pad, AndSliceSendWhatIsShifted) {
  EXPECT_EQ(BytesMoved(R"(
  x = f32[64,10] parameter(0), sharding={devices=[8,1]<=[8]}
  v = f32[] constant(0)
  p = f32[65,10] pad(x, v), padding=1_0x0_0
  ROOT r = f32[64,10] slice(p), slice={[0:64], [0:10]}, sharding={devices=[8,1]<=[8]}
)"),
            7.0 / 8 * 40);
  EXPECT_EQ(BytesMoved(R"(
  x = f32[64,10] parameter(0), sharding={devices=[8,1]<=[8]}
  v = f32[] constant(0)
  s = f32[63,10] slice(x), slice={[0:63], [0:10]}
  ROOT r = f32[64,10] pad(s, v), padding=1_0x0_0, sharding={devices=[8,1]<=[8]}
)"),
            7.0 / 8 * 40);
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

// jnp.pad(x, ..)[2:-2] of JAX, whose padding value is converted: just the rows that are shifted in.
TEST(Slice, OfAPadByAConvertedConstantShiftsRows) {
  EXPECT_EQ(BytesMoved(R"(
  x = f32[1024,512] parameter(0), sharding={devices=[8,1]<=[8]}
  zero = s32[] constant(0)
  z = f32[] convert(zero)
  p = f32[1028,512] pad(x, z), padding=1_3x0_0
  ROOT s = f32[1024,512] slice(p), slice={[2:1026], [0:512]}, sharding={devices=[8,1]<=[8]}
)"),
            512 * 4 / 8 * 7);
}

// jnp.pad(x, 1) of which a stencil reads all neighbors: a row from either side, and a column.
TEST(Slice, OfAPadByAStencilSendsARowForEachNeighbor) {
  const std::string stencil = R"(
  x = f32[1024,512] parameter(0), sharding={devices=[4,2]<=[8]}
  z = f32[] constant(0)
  p = f32[1026,514] pad(x, z), padding=1_1x1_1
  a = f32[1024,512] slice(p), slice={[2:1026], [1:513]}
  b = f32[1024,512] slice(p), slice={[0:1024], [1:513]}
  c = f32[1024,512] slice(p), slice={[1:1025], [2:514]}
  d = f32[1024,512] slice(p), slice={[1:1025], [0:512]}
  e = f32[1024,512] slice(p), slice={[1:1025], [1:513]}
  ab = f32[1024,512] add(a, b)
  cd = f32[1024,512] add(c, d)
  s = f32[1024,512] add(ab, cd)
  ROOT r = f32[1024,512] subtract(s, e), sharding={devices=[4,2]<=[8]}
)";
  EXPECT_EQ(BytesMoved(stencil), 2 * (256 * 4 / 4 * 3) + 2 * (256 * 4 / 2));
}

TEST(Slice, OfPadsAreWhatTheyAreOnOneDevice) {
  VerifyFamily({.text = R"(
  x = f32[@A,@B] parameter(0)<0:2>
  z = f32[] parameter(1)
  p = f32[@(A+3),@(B+1)] pad(x, z), padding=1_2x0_1
  a = f32[@A,@B] slice(p), slice={[3:@(A+3)], [1:@(B+1)]}
  b = f32[@A,@B] slice(p), slice={[0:@A], [0:@B]}
  c = f32[@A,@B] slice(p), slice={[1:@(A+1)], [0:@B]}
  ab = f32[@A,@B] subtract(a, b)
  ROOT r = f32[@A,@B] add(ab, c)<1:2>
)",
                .sizes = kSizes,
                .max_cases = 300,
                .no_fallback = true});
}

}  // namespace
}  // namespace shardcall
