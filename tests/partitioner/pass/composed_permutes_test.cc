// SPDX-License-Identifier: Apache-2.0
// Permutes one after the other run as one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/partitioner/pass/pass_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::Not;

// The text after the pass of these instructions; empty if it is the same.
std::string Composed(const std::string& body) {
  return TextAfter(*MakeComposedPermutes(), absl::StrCat("ENTRY e {\n", body, "}\n"));
}

TEST(ComposedPermutes, WhatIsSentOnIsSentThereAtOnce) {
  const std::string text = Composed(R"(
  x = f32[8] parameter(0)
  p = f32[8] collective-permute(x), source_target_pairs={{0,1},{1,0},{2,3},{3,2}}
  ROOT q = f32[8] collective-permute(p), source_target_pairs={{0,2},{1,3},{2,0},{3,1}}
)");
  EXPECT_THAT(text, HasSubstr("%q = f32[8]{0} collective-permute(%x), "
                              "source_target_pairs={{1,2},{0,3},{3,0},{2,1}}"));
}

TEST(ComposedPermutes, WhatNobodySendsIsZeroInBoth) {
  const std::string text = Composed(R"(
  x = f32[8] parameter(0)
  p = f32[8] collective-permute(x), source_target_pairs={{0,1},{1,2}}
  ROOT q = f32[8] collective-permute(p), source_target_pairs={{0,3},{1,2},{2,0}}
)");
  EXPECT_THAT(text, HasSubstr("collective-permute(%x), source_target_pairs={{0,2},{1,0}}"));
}

TEST(ComposedPermutes, ThoseThatLeaveAllAsItIsAreGone) {
  const std::string text = Composed(R"(
  x = f32[8] parameter(0)
  p = f32[8] collective-permute(x), source_target_pairs={{0,1},{1,0},{2,3},{3,2}}
  q = f32[8] collective-permute(p), source_target_pairs={{0,1},{1,0},{2,3},{3,2}}
  ROOT n = f32[8] negate(q)
)");
  EXPECT_THAT(text, HasSubstr("negate(%x)"));
  // A device that sends nothing has zeros instead.
  EXPECT_EQ(Composed(R"(
  x = f32[8] parameter(0)
  ROOT p = f32[8] collective-permute(x), source_target_pairs={{0,0},{1,1},{2,2}}
)"),
            "");
}

TEST(ComposedPermutes, ThoseOfReplicasAndOfPartitionsStayApart) {
  EXPECT_EQ(Composed(R"(
  x = f32[8] parameter(0)
  p = f32[8] collective-permute(x), source_target_pairs={{0,1},{1,0},{2,3},{3,2}}
  ROOT q = f32[8] collective-permute(p), channel_id=1, source_target_pairs={{0,2},{1,3},{2,0},{3,1}}
)"),
            "");
}

TEST(ComposedPermutes, OfThreeTheLastIsOne) {
  const std::string text = Composed(R"(
  x = f32[8] parameter(0)
  p = f32[8] collective-permute(x), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  q = f32[8] collective-permute(p), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  r = f32[8] collective-permute(q), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  ROOT t = (f32[8], f32[8]) tuple(p, r)
)");
  EXPECT_THAT(text, HasSubstr("%r = f32[8]{0} collective-permute(%x), "
                              "source_target_pairs={{2,1},{3,2},{0,3},{1,0}}"));
  EXPECT_THAT(text, HasSubstr("%p = f32[8]{0} collective-permute(%x)"));
}

TEST(ComposedPermutes, WhatIsComputedBetweenThemIsComputedBefore) {
  const std::string between = R"(
  x = f32[8] parameter(0)
  p = f32[8] collective-permute(x), source_target_pairs={{0,1},{1,0},{2,3},{3,2}}
  n = f32[8] negate(p)
  v = f32[8] reverse(n), dimensions={0}
  ROOT q = f32[8] collective-permute(v), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
)";
  const std::string text = Composed(between);
  EXPECT_THAT(text, HasSubstr("negate(%x)"));
  EXPECT_THAT(text, HasSubstr("collective-permute(%v), "
                              "source_target_pairs={{1,1},{0,2},{3,3},{2,0}}"));
  // A device with zeros would have to compute of them.
  EXPECT_EQ(Composed(absl::StrReplaceAll(between, {{"{0,1},{1,0},{2,3},{3,2}", "{0,1},{1,0}"}})),
            "");
  // What others read of it they need where it is.
  EXPECT_EQ(Composed(absl::StrReplaceAll(
                between, {{"ROOT q", "q"},
                          {"{3,0}}\n", "{3,0}}\n  ROOT t = (f32[8], f32[8]) tuple(n, q)\n"}})),
            "");
}

}  // namespace
}  // namespace shardcall
