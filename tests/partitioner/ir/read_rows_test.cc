// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/read_rows.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/analysis/equal_values.h"
#include "tests/partitioner/ir/text_util.h"

namespace shardcall {
namespace {

// "begin:end" of each sort of which a part is read, in order.
std::string ReadOf(const std::string& entry) {
  const auto parsed = Parse(absl::StrCat(R"(HloModule m
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
less_of_pairs {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY main {
  x = f32[4,20] parameter(0)
  i = s32[4,20] iota(), iota_dimension=1
)",
                                         entry, "}\n"));
  if (!parsed.ok()) return std::string(parsed.status().message());
  const Module& m = *parsed;
  const auto rows = ReadRowsOfSorts(m, EqualValues(m));
  std::string out;
  for (int k = 0; k < m.num_instructions(); ++k) {
    const auto found = rows.find(InstrId(k));
    if (found == rows.end()) continue;
    absl::StrAppend(&out, out.empty() ? "" : " ", found->second.begin, ":", found->second.end);
  }
  return out;
}

TEST(ReadRows, OfOneSlice) {
  const auto of = [](absl::string_view taken, int size) {
    return ReadOf(absl::StrCat("  s = f32[4,20] sort(x), dimensions={1}, to_apply=less\n",
                               "  ROOT r = f32[4,", size, "] slice(s), slice={[0:4], ", taken,
                               "}\n"));
  };
  EXPECT_EQ(of("[0:3]", 3), "0:3");
  EXPECT_EQ(of("[0:9:2]", 5), "0:9");
  EXPECT_EQ(of("[2:5]", 3), "");  // at no end, with what is before it
  EXPECT_EQ(of("[17:20]", 3), "17:20");
  EXPECT_EQ(of("[0:10]", 10), "");  // half of it
}

TEST(ReadRows, OfAllElementsOfATuple) {
  const std::string pairs = R"(
  t = (f32[4,20], s32[4,20]) sort(x, i), dimensions={1}, to_apply=less_of_pairs
  v = f32[4,20] get-tuple-element(t), index=0
  w = s32[4,20] get-tuple-element(t), index=1
  a = f32[4,2] slice(v), slice={[0:4], [0:2]}
)";
  EXPECT_EQ(ReadOf(pairs + R"(
  b = s32[4,5] slice(w), slice={[0:4], [0:5]}
  ROOT r = (f32[4,2], s32[4,5]) tuple(a, b)
)"),
            "0:5");
  EXPECT_EQ(ReadOf(pairs + "  ROOT r = (f32[4,2], s32[4,20]) tuple(a, w)\n"), "");
  EXPECT_EQ(ReadOf(pairs + R"(
  b = s32[4,2] slice(w), slice={[0:4], [18:20]}
  ROOT r = (f32[4,2], s32[4,2]) tuple(a, b)
)"),
            "");
}

// An equal op may have its value from the first one.
TEST(ReadRows, OfEqualSortsTogether) {
  const std::string twice = R"(
  s = f32[4,20] sort(x), dimensions={1}, to_apply=less
  t = f32[4,20] sort(x), dimensions={1}, to_apply=less
  a = f32[4,2] slice(s), slice={[0:4], [0:2]}
)";
  EXPECT_EQ(ReadOf(twice + R"(
  b = f32[4,6] slice(t), slice={[0:4], [0:6]}
  ROOT r = (f32[4,2], f32[4,6]) tuple(a, b)
)"),
            "0:6 0:6");
  EXPECT_EQ(ReadOf(twice + "  ROOT r = (f32[4,2], f32[4,20]) tuple(a, t)\n"), "");
}

TEST(ReadRows, PlacesAreAnIotaAlongTheLine) {
  const auto number = [](absl::string_view places) {
    const auto parsed = Parse(absl::StrCat(R"(HloModule m
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY main {
  x = f32[4,20] parameter(0)
  line = s32[20] iota(), iota_dimension=0
  column = s32[4] iota(), iota_dimension=0
  i = s32[4,20] )",
                                           places, R"(
  ROOT t = (f32[4,20], s32[4,20]) sort(x, i), dimensions={1}, to_apply=less
}
)"));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    const Module& m = *parsed;
    return PlacesOperand(m, m.comp(m.entry()).root);
  };
  EXPECT_EQ(number("iota(), iota_dimension=1"), 1);
  EXPECT_EQ(number("iota(), iota_dimension=0"), -1);
  EXPECT_EQ(number("broadcast(line), dimensions={1}"), 1);
  EXPECT_EQ(number("broadcast(column), dimensions={0}"), -1);
}

}  // namespace
}  // namespace shardcall
