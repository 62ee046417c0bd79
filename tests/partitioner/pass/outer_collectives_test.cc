// SPDX-License-Identifier: Apache-2.0
// Gathers, reduce-scatters and all-to-alls along an inner dimension run along a new outermost one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/partitioner/pass/pass_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

// The text after the pass of these instructions and of a sum `add`; empty if it is the same.
std::string Outer(const std::string& body) {
  return TextAfter(*MakeOuterCollectives(), absl::StrCat(R"(
add {
  left = f32[] parameter(0)
  right = f32[] parameter(1)
  ROOT sum = f32[] add(left, right)
}
ENTRY e {
)",
                                                         body, "}\n"));
}

TEST(OuterCollectives, Gather) {
  const std::string text = Outer(R"(
  x = f32[6,2,5] parameter(0)
  ROOT g = f32[6,8,5] all-gather(x), replica_groups={{0,1,2,3}}, dimensions={1}
)");
  EXPECT_THAT(text, HasSubstr("= f32[1,6,2,5]{3,2,1,0} reshape(%x)"));
  EXPECT_THAT(text, HasSubstr("%g = f32[4,6,2,5]{3,2,1,0} all-gather("));
  EXPECT_THAT(text, HasSubstr("dimensions={0}"));
  EXPECT_THAT(text, HasSubstr("= f32[6,4,2,5]{3,2,1,0} transpose(%g), dimensions={1,0,2,3}"));
  EXPECT_THAT(text, HasSubstr("= f32[6,8,5]{2,1,0} reshape("));
}

TEST(OuterCollectives, ReduceScatter) {
  const std::string text = Outer(R"(
  x = f32[6,5,8] parameter(0)
  ROOT s = f32[6,5,2] reduce-scatter(x), replica_groups={{0,1,2,3}}, dimensions={2}, to_apply=add
)");
  EXPECT_THAT(text, HasSubstr("= f32[6,5,4,2]{3,2,1,0} reshape(%x)"));
  EXPECT_THAT(text, HasSubstr("= f32[4,6,5,2]{3,2,1,0} transpose("));
  EXPECT_THAT(text, HasSubstr("dimensions={2,0,1,3}"));
  EXPECT_THAT(text, HasSubstr("%s = f32[1,6,5,2]{3,2,1,0} reduce-scatter("));
  EXPECT_THAT(text, HasSubstr("= f32[6,5,2]{2,1,0} reshape(%s)"));
}

TEST(OuterCollectives, AllToAll) {
  const std::string text = Outer(R"(
  x = f32[6,8] parameter(0)
  ROOT a = f32[6,8] all-to-all(x), replica_groups={{0,1,2,3}}, dimensions={1}
)");
  EXPECT_THAT(text, HasSubstr("= f32[6,4,2]{2,1,0} reshape(%x)"));
  EXPECT_THAT(text, HasSubstr("= f32[4,6,2]{2,1,0} transpose("));
  EXPECT_THAT(text, HasSubstr("%a = f32[4,6,2]{2,1,0} all-to-all("));
  EXPECT_THAT(text, HasSubstr("dimensions={0}"));
  EXPECT_THAT(text, HasSubstr("= f32[6,4,2]{2,1,0} transpose(%a), dimensions={1,0,2}"));
  EXPECT_THAT(text, HasSubstr("= f32[6,8]{1,0} reshape("));
}

TEST(OuterCollectives, TheseStay) {
  EXPECT_EQ(Outer(R"(
  x = f32[2,6] parameter(0)
  ROOT g = f32[8,6] all-gather(x), replica_groups={{0,1,2,3}}, dimensions={0}
)"),
            "")
      << "the outermost dimension";
  EXPECT_EQ(Outer(R"(
  x = f32[1,1,2] parameter(0)
  ROOT g = f32[1,1,8] all-gather(x), replica_groups={{0,1,2,3}}, dimensions={2}
)"),
            "")
      << "nothing is further out in memory";
  EXPECT_EQ(Outer(R"(
  x = s4[6,2] parameter(0)
  ROOT g = s4[6,8] all-gather(x), replica_groups={{0,1,2,3}}, dimensions={1}
)"),
            "")
      << "elements smaller than a byte";
}

}  // namespace
}  // namespace shardcall
