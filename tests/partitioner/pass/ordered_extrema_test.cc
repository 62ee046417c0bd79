// SPDX-License-Identifier: Apache-2.0
// Maxima and minima across devices as integers: the module computes the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "tests/partitioner/pass/pass_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

constexpr char kExtremum[] = R"(
red { a = TYPE[] parameter(0) b = TYPE[] parameter(1) ROOT r = TYPE[] OP(a, b) }
ENTRY e {
  x = TYPE[8] parameter(0)
  ROOT m = COLLECTIVE, replica_groups={{0,1,2,3}}, to_apply=red
}
)";

std::string Extremum(const std::string& type, const std::string& op,
                     const std::string& collective) {
  return absl::StrReplaceAll(absl::StrReplaceAll(kExtremum, {{"COLLECTIVE", collective}}),
                             {{"TYPE", type}, {"OP", op}});
}

std::string Ordered(const std::string& text) { return TextAfter(*MakeOrderedExtrema(), text); }

TEST(OrderedExtrema, OfFloatsAreReducedAsIntegersOfTheirSize) {
  const char* kSame[][2] = {{"f64", "s64"}, {"f32", "s32"}, {"f16", "s16"}, {"bf16", "s16"}};
  for (const auto& [type, integer] : kSame) {
    for (const char* op : {"maximum", "minimum"}) {
      const std::string text = Ordered(Extremum(type, op, "TYPE[8] all-reduce(x)"));
      EXPECT_THAT(text, HasSubstr(std::string(integer) + "[8]{0} all-reduce("));
      EXPECT_THAT(text, HasSubstr("to_apply=%" + std::string(op) + "." + integer));
      EXPECT_THAT(text, HasSubstr(std::string("ROOT %bitcast-convert.1 = ") + type + "[8]"));
    }
  }
}

TEST(OrderedExtrema, OfReduceScattersStartedReductionsAndTuples) {
  EXPECT_THAT(Ordered(Extremum("f32", "maximum", "TYPE[2] reduce-scatter(x), dimensions={0}")),
              HasSubstr("s32[2]{0} reduce-scatter("));
  const std::string started = Ordered(absl::StrReplaceAll(
      Extremum("f32", "minimum", "TYPE[8] all-reduce-start(x)"), {{"ROOT m", "m"},
                                                                  {"red\n}",
                                                                   "red\n  ROOT d = f32[8] "
                                                                   "all-reduce-done(m)\n}"}}));
  EXPECT_THAT(started, HasSubstr("s32[8]{0} all-reduce-start("));
  EXPECT_THAT(started, HasSubstr("s32[8]{0} all-reduce-done("));
  EXPECT_THAT(started, HasSubstr("f32[8]{0} bitcast-convert("));
  const std::string both =
      Ordered(Extremum("f32", "maximum", "(TYPE[8], TYPE[8]) all-reduce(x, x)"));
  EXPECT_THAT(both, HasSubstr("(s32[8]{0}, s32[8]{0}) all-reduce("));
  EXPECT_THAT(both, HasSubstr("(f32[8]{0}, f32[8]{0}) tuple("));
}

TEST(OrderedExtrema, OtherReductionsStayAsTheyAre) {
  EXPECT_EQ(Ordered(Extremum("f32", "add", "TYPE[8] all-reduce(x)")), "");
  EXPECT_EQ(Ordered(Extremum("s32", "maximum", "TYPE[8] all-reduce(x)")), "");
}

}  // namespace
}  // namespace shardcall
