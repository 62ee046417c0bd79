// SPDX-License-Identifier: Apache-2.0
// Permutes that send a part of what another one sends between the same devices take it from there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/partitioner/pass/pass_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::Not;

// The text after the pass of these instructions; empty if it is the same.
std::string Shared(const std::string& body) {
  return TextAfter(*MakeSharedPermutes(), absl::StrCat("ENTRY e {\n", body, "}\n"));
}

TEST(SharedPermutes, ThePartIsASliceOfTheWhole) {
  const std::string text = Shared(R"(
  x = f32[8,4] parameter(0)
  a = f32[3,4] slice(x), slice={[0:3], [0:4]}
  p = f32[3,4] collective-permute(a), source_target_pairs={{1,0},{2,1}}
  b = f32[1,4] slice(x), slice={[1:2], [0:4]}
  q = f32[1,4] collective-permute(b), source_target_pairs={{1,0},{2,1}}
  ROOT t = (f32[3,4], f32[1,4]) tuple(p, q)
)");
  EXPECT_THAT(text, HasSubstr("%p = f32[3,4]{1,0} collective-permute("));
  EXPECT_THAT(text, Not(HasSubstr("f32[1,4]{1,0} collective-permute(")));
  EXPECT_THAT(text, HasSubstr("f32[1,4]{1,0} slice(%p), slice={[1:2], [0:4]}"));
}

TEST(SharedPermutes, TheWholeRunsWhereTheFirstPartDid) {
  const std::string text = Shared(R"(
  x = f32[8,4] parameter(0)
  a = f32[1,4] slice(x), slice={[0:1], [0:4]}
  p = f32[1,4] collective-permute(a), source_target_pairs={{1,0}}
  n = f32[1,4] negate(p)
  b = f32[2,4] slice(x), slice={[0:2], [0:4]}
  q = f32[2,4] collective-permute(b), source_target_pairs={{1,0}}
  r = f32[8,4] collective-permute(x), source_target_pairs={{1,0}}
  ROOT t = (f32[1,4], f32[2,4], f32[8,4]) tuple(n, q, r)
)");
  const size_t whole = text.find("%r = f32[8,4]{1,0} collective-permute(%x)");
  ASSERT_NE(whole, text.npos) << text;
  EXPECT_LT(whole, text.find("negate("));
  EXPECT_THAT(text, HasSubstr("f32[1,4]{1,0} slice(%r), slice={[0:1], [0:4]}"));
  EXPECT_THAT(text, HasSubstr("f32[2,4]{1,0} slice(%r), slice={[0:2], [0:4]}"));
  EXPECT_EQ(text.find("collective-permute(", text.find("collective-permute(") + 1), text.npos);
}

TEST(SharedPermutes, EqualOnesRunOnce) {
  const std::string text = Shared(R"(
  x = f32[8] parameter(0)
  a = f32[1] slice(x), slice={[7:8]}
  b = f32[1] slice(x), slice={[7:8]}
  p = f32[1] collective-permute(a), channel_id=1, source_target_pairs={{1,0}}
  q = f32[1] collective-permute(b), channel_id=2, source_target_pairs={{1,0}}
  ROOT t = (f32[1], f32[1]) tuple(p, q)
)");
  EXPECT_THAT(text, HasSubstr("tuple(%p, %p)"));
}

TEST(SharedPermutes, OfAWholeThatIsPartOfNoneItself) {
  const std::string text = Shared(R"(
  x = f32[8] parameter(0)
  a = f32[2] slice(x), slice={[0:2]}
  b = f32[3] slice(x), slice={[0:3]}
  c = f32[2] slice(x), slice={[2:4]}
  p = f32[2] collective-permute(a), source_target_pairs={{1,0}}
  q = f32[3] collective-permute(b), source_target_pairs={{1,0}}
  r = f32[2] collective-permute(c), source_target_pairs={{1,0}}
  ROOT t = (f32[2], f32[3], f32[2]) tuple(p, q, r)
)");
  EXPECT_THAT(text, HasSubstr("%q = f32[3]{0} collective-permute("));
  EXPECT_THAT(text, HasSubstr("%r = f32[2]{0} collective-permute(")) << "row 3 is in no other";
}

TEST(SharedPermutes, TheseStay) {
  EXPECT_EQ(Shared(R"(
  x = f32[8] parameter(0)
  a = f32[1] slice(x), slice={[0:1]}
  b = f32[2] slice(x), slice={[0:2]}
  p = f32[1] collective-permute(a), source_target_pairs={{1,0}}
  q = f32[2] collective-permute(b), source_target_pairs={{0,1}}
  ROOT t = (f32[1], f32[2]) tuple(p, q)
)"),
            "")
      << "between other devices";
  EXPECT_EQ(Shared(R"(
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  a = f32[1] slice(x), slice={[0:1]}
  b = f32[2] slice(y), slice={[0:2]}
  p = f32[1] collective-permute(a), source_target_pairs={{1,0}}
  q = f32[2] collective-permute(b), source_target_pairs={{1,0}}
  ROOT t = (f32[1], f32[2]) tuple(p, q)
)"),
            "")
      << "of other values";
  EXPECT_EQ(Shared(R"(
  x = f32[8] parameter(0)
  a = f32[2] slice(x), slice={[0:4:2]}
  b = f32[4] slice(x), slice={[0:4]}
  p = f32[2] collective-permute(a), source_target_pairs={{1,0}}
  q = f32[4] collective-permute(b), source_target_pairs={{1,0}}
  ROOT t = (f32[2], f32[4]) tuple(p, q)
)"),
            "")
      << "every other row";
}

}  // namespace
}  // namespace shardcall
