// SPDX-License-Identifier: Apache-2.0
// Reductions start from the identity, and other inits are combined with what they give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/substitute.h"
#include "tests/partitioner/pass/pass_testing.h"

namespace shardcall {
namespace {

using testing::HasSubstr;

// A reduction of x by `op` in `type`, from `init`, of so many elements each.
std::string Reduction(const std::string& op, const std::string& type, const std::string& init,
                      int elements = 4) {
  return absl::Substitute(R"(
f { a = $1[] parameter(0)
  b = $1[] parameter(1)
  ROOT r = $1[] $0(a, b) }
ENTRY e {
  x = $1[$3,3] parameter(0)
  i = $1[] $2
  ROOT r = $1[3] reduce(x, i), dimensions={0}, to_apply=f
}
)",
                          op, type, init, elements);
}

std::string After(const std::string& text) { return TextAfter(*MakeSeparateInits(), text); }

TEST(SeparateInits, AreCombinedWithTheResult) {
  const std::string text = After(Reduction("add", "f32", "parameter(1)"));
  EXPECT_THAT(text, HasSubstr("constant(-0.0)"));
  EXPECT_THAT(text, HasSubstr("%r.1 = f32[3]{0} reduce(%x, %constant), dimensions={0}"));
  EXPECT_THAT(text, HasSubstr("broadcast(%i), dimensions={}"));
  EXPECT_THAT(text, HasSubstr("ROOT %add = f32[3]{0} add(%broadcast, %r.1)"));
}

TEST(SeparateInits, OfEachMonoid) {
  for (const char* op : {"add", "multiply", "maximum", "minimum", "and", "or", "xor"}) {
    EXPECT_THAT(After(Reduction(op, "s32", "constant(5)", 1)),
                HasSubstr(absl::Substitute("ROOT %$0 = s32[3]{0} $0(", op)));
  }
}

TEST(SeparateInits, TheIdentityStays) {
  EXPECT_EQ(After(Reduction("add", "f32", "constant(0)")), "");
  EXPECT_EQ(After(Reduction("add", "f32", "constant(-0.0)")), "");
  EXPECT_EQ(After(Reduction("maximum", "f32", "constant(-inf)")), "");
  EXPECT_EQ(After(Reduction("multiply", "s32", "constant(1)")), "");
}

// Of several elements only those ops that may not count it again.
TEST(SeparateInits, OfAMaximumOfSeveralElementsStay) {
  EXPECT_EQ(After(Reduction("maximum", "s32", "constant(5)")), "");
  EXPECT_EQ(After(Reduction("or", "s32", "constant(5)")), "");
  EXPECT_NE(After(Reduction("xor", "s32", "constant(5)")), "");
}

// The result is the init, without an op.
TEST(SeparateInits, OfNothingStay) {
  EXPECT_EQ(After(Reduction("add", "f32", "parameter(1)", 0)), "");
}

// Where the op is no monoid there is no identity to start from.
TEST(SeparateInits, OfOtherOpsStay) {
  EXPECT_EQ(After(Reduction("subtract", "f32", "parameter(1)")), "");
}

}  // namespace
}  // namespace shardcall
