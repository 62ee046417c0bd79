// SPDX-License-Identifier: Apache-2.0
// FFTs of sharded lines, planes and volumes against one device, and what they send.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/api/report.h"
#include "tests/partitioner/spmd/plan_testing.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::IsEmpty;
using testing::Le;

std::string Fft(absl::string_view in, absl::string_view out, absl::string_view attrs,
                absl::string_view from, absl::string_view to) {
  return absl::StrCat("  x = ", in, " parameter(0), sharding=", from, "\n  ROOT r = ", out,
                      " fft(x), ", attrs, ", sharding=", to, "\n");
}

TEST(Fft, BatchesStaySharded) {
  VerifyFamily({.text = R"(
  x = f32[@A,8] parameter(0)<0:2>
  i = c64[@A,8] convert(x)
  ROOT r = c64[@A,8] fft(i), fft_type=FFT, fft_length={8}<1:2>
)",
                .sizes = {{{'A', 8}}, {{'A', 10}}, {{'A', 5}}, {{'A', 1}}},
                .max_cases = 150});
}

const std::vector<Sizes> kPlanes = {
    {{'A', 8}, {'B', 16}}, {{'A', 12}, {'B', 6}}, {{'A', 5}, {'B', 10}}, {{'A', 1}, {'B', 8}}};

TEST(Fft, OfPlanesOfWhichDimensionsAreSharded) {
  for (const char* type : {"FFT", "IFFT"}) {
    VerifyFamily({.text = absl::StrCat(R"(
  x = f32[@A,@B] parameter(0)<0:2>
  i = c64[@A,@B] convert(x)
  ROOT r = c64[@A,@B] fft(i), fft_type=)",
                                       type, ", fft_length={@A,@B}<1:2>\n"),
                  .sizes = kPlanes,
                  .max_cases = 200});
  }
}

TEST(Fft, OfBatchesOfRealPlanes) {
  VerifyFamily({.text = R"(
  x = f32[3,@A,@B] parameter(0)<0:3>
  ROOT r = c64[3,@A,@(B/2+1)] fft(x), fft_type=RFFT, fft_length={@A,@B}<1:3>
)",
                .sizes = kPlanes,
                .max_cases = 200});
}

TEST(Fft, OfHalfASpectrumToRealVolumes) {
  VerifyFamily({.text = R"(
  x = f32[@A,6,@(B/2+1)] parameter(0)<0:3>
  i = c64[@A,6,@(B/2+1)] convert(x)
  ROOT r = f32[@A,6,@B] fft(i), fft_type=IRFFT, fft_length={@A,6,@B}<1:3>
)",
                .sizes = kPlanes,
                .max_cases = 200});
}

TEST(Fft, OfLinesInFourSteps) {
  for (const char* type : {"FFT", "IFFT"}) {
    VerifyFamily({.text = absl::StrCat(R"(
  x = f32[@A] parameter(0)<0:1>
  y = f32[@A] parameter(1)<1:1>
  i = c64[@A] complex(x, y)
  ROOT r = c64[@A] fft(i), fft_type=)",
                                       type, ", fft_length={@A}<2:1>\n"),
                  .sizes = {{{'A', 512}}, {{'A', 576}}, {{'A', 100}}, {{'A', 7}}, {{'A', 1}}},
                  .max_cases = 120});
  }
}

TEST(Fft, OfFewLinesInFourSteps) {
  VerifyFamily({.text = R"(
  x = f32[3,@A] parameter(0)<0:2>
  y = f64[3,@A] convert(x)
  i = c128[3,@A] convert(y)
  ROOT r = c128[3,@A] fft(i), fft_type=FFT, fft_length={@A}<1:2>
)",
                .sizes = {{{'A', 512}}, {{'A', 192}}, {{'A', 12}}},
                .max_cases = 120});
}

const std::vector<Sizes> kLines = {{{'A', 512}}, {{'A', 1152}}, {{'A', 96}}, {{'A', 32}},
                                   {{'A', 8}},   {{'A', 7}},    {{'A', 2}}};

TEST(Fft, OfRealLinesInFourSteps) {
  VerifyFamily({.text = R"(
  x = f32[@A] parameter(0)<0:1>
  ROOT r = c64[@(A/2+1)] fft(x), fft_type=RFFT, fft_length={@A}<1:1>
)",
                .sizes = kLines,
                .max_cases = 150});
}

TEST(Fft, OfFewRealLinesInFourSteps) {
  VerifyFamily({.text = R"(
  x = f32[3,@A] parameter(0)<0:2>
  y = f64[3,@A] convert(x)
  ROOT r = c128[3,@(A/2+1)] fft(y), fft_type=RFFT, fft_length={@A}<1:2>
)",
                .sizes = {{{'A', 512}}, {{'A', 192}}, {{'A', 12}}},
                .max_cases = 120});
}

// The imaginary parts of the first and, of even lines, the last element do not count.
TEST(Fft, OfHalfASpectrumToARealLineInFourSteps) {
  VerifyFamily({.text = R"(
  x = f32[@(A/2+1)] parameter(0)<0:1>
  y = f32[@(A/2+1)] parameter(1)<1:1>
  i = c64[@(A/2+1)] complex(x, y)
  ROOT r = f32[@A] fft(i), fft_type=IRFFT, fft_length={@A}<2:1>
)",
                .sizes = kLines,
                .max_cases = 150});
}

TEST(Fft, OfHalvesOfFewSpectraToRealLinesInFourSteps) {
  VerifyFamily({.text = R"(
  x = f32[3,@(A/2+1)] parameter(0)<0:2>
  y = f64[3,@(A/2+1)] convert(x)
  i = c128[3,@(A/2+1)] complex(y, y)
  ROOT r = f64[3,@A] fft(i), fft_type=IRFFT, fft_length={@A}<1:2>
)",
                .sizes = {{{'A', 512}}, {{'A', 192}}, {{'A', 12}}},
                .max_cases = 120});
}

// A shard of n sends (n - 1) / n of itself in each all-to-all.
TEST(Fft, APlaneThatStaysAsItIsShardedIsTwoAllToAlls) {
  const char* rows = "{devices=[8,1]<=[8]}";
  const char* attrs = "fft_type=FFT, fft_length={1024,512}";
  EXPECT_EQ(BytesMoved(Fft("c64[1024,512]", "c64[1024,512]", attrs, rows, rows)),
            2 * 1024 * 512 * 8 / 8 * 7 / 8);
}

TEST(Fft, APlaneThatChangesItsShardedDimensionIsOneAllToAll) {
  const char* attrs = "fft_type=FFT, fft_length={1024,512}";
  EXPECT_EQ(BytesMoved(Fft("c64[1024,512]", "c64[1024,512]", attrs, "{devices=[8,1]<=[8]}",
                           "{devices=[1,8]<=[8]}")),
            1024 * 512 * 8 / 8 * 7 / 8);
}

TEST(Fft, APencilThatTurnsIsTwoAllToAlls) {
  const auto p = Done(Fft("c64[64,64,64]", "c64[64,64,64]", "fft_type=FFT, fft_length={64,64,64}",
                          "{devices=[4,2,1]<=[8]}", "{devices=[1,4,2]<=[8]}"),
                      8);
  EXPECT_EQ(TotalBytesMoved(p->local), 64 * 64 * 64 * 8 / 8 * (3. / 4 + 1. / 2));
  EXPECT_THAT(p->plan.fallbacks, IsEmpty());
}

TEST(Fft, ALineIsThreeAllToAlls) {
  const auto p = Done(Fft("c64[1048576]", "c64[1048576]", "fft_type=FFT, fft_length={1048576}",
                          "{devices=[8]<=[8]}", "{devices=[8]<=[8]}"),
                      8);
  EXPECT_EQ(TotalBytesMoved(p->local), 3 * 1048576 * 8 / 8 * 7 / 8);
  EXPECT_EQ(CountOpcode(*p, Opcode::kAllToAll), 3);
  EXPECT_THAT(p->plan.fallbacks, IsEmpty());
}

// 512 rows and 2048 columns: the line as real numbers, half of its transform as complex ones twice
// (257 rows, padded to 264), and fewer elements than there are devices between neighbours.
TEST(Fft, ARealLineIsThreeAllToAllsOfHalfAsMuchAsAComplexOne) {
  const double line = 1048576, all_to_alls = (line * 4 + 2 * 264 * 2048 * 8) / 8 * 7 / 8;
  for (bool forward : {true, false}) {
    const absl::string_view real = "f32[1048576]", complex = "c64[524289]";
    const auto p =
        Done(Fft(forward ? real : complex, forward ? complex : real,
                 absl::StrCat("fft_type=", forward ? "RFFT" : "IRFFT", ", fft_length={1048576}"),
                 "{devices=[8]<=[8]}", "{devices=[8]<=[8]}"),
             8);
    EXPECT_EQ(CountOpcode(*p, Opcode::kAllToAll), 3);
    EXPECT_THAT(TotalBytesMoved(p->local), AllOf(Ge(all_to_alls), Le(all_to_alls + 8 * 8)));
    EXPECT_THAT(p->plan.fallbacks, IsEmpty());
  }
}

}  // namespace
}  // namespace shardcall
