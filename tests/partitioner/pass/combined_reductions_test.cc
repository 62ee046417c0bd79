// SPDX-License-Identifier: Apache-2.0
// Small all-reduces over the same devices run as one, where none is read before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/partitioner/pass/pass_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// The text after the pass of these instructions; empty if it is the same. SUM(x) is an all-reduce
// over the devices of a row.
std::string Combined(const std::string& body) {
  const std::string text = absl::StrReplaceAll(
      body, {{"SUM(", "all-reduce("}, {")ROWS", "), replica_groups={{0,1},{2,3}}, to_apply=add"}});
  return TextAfter(*MakeCombinedReductions(), absl::StrCat(R"(add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY e {
)",
                                                           text, "}\n"));
}

int Occurrences(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(CombinedReductions, OfSeveralShapesAreOneOfALine) {
  const std::string text = Combined(R"(
  x = f32[3,4] parameter(0)
  y = f32[] parameter(1)
  p = f32[3,4] SUM(x)ROWS
  z = f32[2] parameter(2)
  q = f32[] SUM(y)ROWS
  r = f32[2] SUM(z)ROWS
  ROOT t = (f32[3,4], f32[], f32[2]) tuple(p, q, r)
)");
  EXPECT_EQ(Occurrences(text, "all-reduce("), 1) << text;
  EXPECT_THAT(text, HasSubstr("f32[15]{0} all-reduce("));
  EXPECT_THAT(text, HasSubstr("slice={[0:12]}"));
  EXPECT_THAT(text, HasSubstr("slice={[12:13]}"));
  EXPECT_THAT(text, HasSubstr("slice={[13:15]}"));
}

// q needs p, so r is all that can join q.
TEST(CombinedReductions, EndWhereAResultIsRead) {
  const std::string text = Combined(R"(
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  p = f32[3] SUM(x)ROWS
  n = f32[3] negate(p)
  q = f32[3] SUM(n)ROWS
  r = f32[3] SUM(y)ROWS
  ROOT t = (f32[3], f32[3]) tuple(q, r)
)");
  EXPECT_EQ(Occurrences(text, "all-reduce("), 2) << text;
  EXPECT_THAT(text, HasSubstr("%p = f32[3]{0} all-reduce(%x)"));
  EXPECT_THAT(text, HasSubstr("f32[6]{0} all-reduce("));
}

TEST(CombinedReductions, OfOtherTypesOrOverOtherDevicesStay) {
  EXPECT_THAT(Combined(R"(
  x = f32[3] parameter(0)
  p = f32[3] SUM(x)ROWS
  q = f32[3] all-reduce(x), replica_groups={{0,2},{1,3}}, to_apply=add
  ROOT t = (f32[3], f32[3]) tuple(p, q)
)"),
              IsEmpty());
}

TEST(CombinedReductions, LargeOnesStay) {
  EXPECT_THAT(Combined(R"(
  x = f32[256,256] parameter(0)
  y = f32[3] parameter(1)
  p = f32[256,256] SUM(x)ROWS
  q = f32[3] SUM(y)ROWS
  ROOT t = (f32[256,256], f32[3]) tuple(p, q)
)"),
              IsEmpty());
}

TEST(CombinedReductions, TheRootMayBeOne) {
  const std::string text = Combined(R"(
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  p = f32[3] SUM(x)ROWS
  ROOT q = f32[3] SUM(y)ROWS
)");
  EXPECT_THAT(text, HasSubstr("f32[6]{0} all-reduce("));
  EXPECT_THAT(text, HasSubstr("ROOT "));
}

}  // namespace
}  // namespace shardcall
