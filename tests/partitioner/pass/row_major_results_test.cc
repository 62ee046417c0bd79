// SPDX-License-Identifier: Apache-2.0
// Results of FFTs between collectives say that they are row-major.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/partitioner/pass/pass_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

// The module's text after the pass; empty if it is the same.
std::string Constrained(const std::string& body) {
  return TextAfter(*MakeRowMajorResults(), "ENTRY e {\n" + body + "}\n");
}

TEST(RowMajorResults, AllUsersReadTheConstrainedResult) {
  const std::string text = Constrained(R"(
  x = c64[4,2] parameter(0)
  g = c64[4,8] all-gather(x), replica_groups={{0,1,2,3}}, dimensions={1}
  f = c64[4,8] fft(g), fft_type=FFT, fft_length={8}
  a = f32[4,8] real(f)
  b = f32[4,8] imag(f)
  ROOT r = f32[4,8] add(a, b)
)");
  EXPECT_THAT(text, HasSubstr("c64[4,8]{1,0} custom-call(%f), "
                              "custom_call_target=\"LayoutConstraint\", "
                              "operand_layout_constraints={c64[4,8]{1,0}}"));
  EXPECT_THAT(text, HasSubstr("real(%custom-call)"));
  EXPECT_THAT(text, HasSubstr("imag(%custom-call)"));
}

TEST(RowMajorResults, TheRootToo) {
  const std::string text = Constrained(R"(
  x = f32[4,2] parameter(0)
  g = f32[4,8] all-gather(x), replica_groups={{0,1,2,3}}, dimensions={1}
  ROOT f = c64[4,5] fft(g), fft_type=RFFT, fft_length={8}
)");
  EXPECT_THAT(text, HasSubstr("ROOT %custom-call"));
}

TEST(RowMajorResults, WithoutCollectivesNothingIsChanged) {
  EXPECT_EQ(Constrained(R"(
  x = c64[4,8] parameter(0)
  ROOT f = c64[4,8] fft(x), fft_type=FFT, fft_length={8}
)"),
            "");
}

}  // namespace
}  // namespace shardcall
