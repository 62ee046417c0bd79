// SPDX-License-Identifier: Apache-2.0
// Reverses go where fewer bytes are reversed, through the ops that do not mind.
#include "shardcall/partitioner/ir/simplify/carried_reverses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/partitioner/ir/text_util.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The text of the module with this entry, after it; empty if nothing changes.
std::string Carried(const std::string& entry) {
  return TextAfter(absl::StrCat(R"(HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
)",
                                entry, "}\n"),
                   CarryReverses);
}

TEST(CarriedReverses, ThatCancelGo) {
  const std::string text = Carried(R"(
  x = f32[8,4] parameter(0)
  y = f32[8,4] parameter(1)
  a = f32[8,4] reverse(x), dimensions={0}
  b = f32[8,4] reverse(y), dimensions={0}
  s = f32[8,4] add(a, b)
  ROOT r = f32[8,4] reverse(s), dimensions={0}
)");
  EXPECT_THAT(text, HasSubstr("add(%x, %y)"));
  EXPECT_THAT(text, Not(HasSubstr("reverse(")));
}

TEST(CarriedReverses, MirrorSlicesPadsAndConcatenations) {
  // Rows 1, 4 and 7 of the reverse are rows 8, 5 and 2.
  const std::string text = Carried(R"(
  x = f32[10,4] parameter(0)
  z = f32[] constant(0)
  a = f32[10,4] reverse(x), dimensions={0}
  s = f32[3,4] slice(a), slice={[1:8:3], [0:4]}
  t = f32[2,4] slice(a), slice={[0:2], [0:4]}
  u = f32[3,4] pad(t, z), padding=1_0x0_0
  c = f32[6,4] concatenate(s, u), dimensions={0}
  ROOT r = f32[6,4] reverse(c), dimensions={0}
)");
  EXPECT_THAT(text, HasSubstr("slice(%x), slice={[2:9:3], [0:4:1]}"));
  EXPECT_THAT(text, HasSubstr("slice(%x), slice={[8:10], [0:4]}"));
  EXPECT_THAT(text, HasSubstr("padding=0_1x0_0"));
  EXPECT_THAT(text, HasSubstr("concatenate(%u, %s)"));
  EXPECT_THAT(text, Not(HasSubstr("reverse(")));
}

// The last of three windows ends one place before the padding does, where the mirrored first one
// begins.
TEST(CarriedReverses, MirrorWindows) {
  const auto windows = [](const std::string& pads) {
    return Carried(absl::StrCat(R"(
  x = f32[7] parameter(0)
  z = f32[] constant(0)
  a = f32[7] reverse(x), dimensions={0}
  s = f32[3] reduce-window(a, z), window={size=3 stride=2 pad=)",
                                pads, R"(}, to_apply=add
  ROOT r = f32[3] reverse(s), dimensions={0}
)"));
  };
  EXPECT_THAT(windows("0_1"), HasSubstr("reduce-window(%x, %z), window={size=3 stride=2}"));
  EXPECT_THAT(windows("1_0"), IsEmpty()) << "a window would begin after its operand does";
}

TEST(CarriedReverses, EndAtAReductionOverTheirDimension) {
  const std::string text = Carried(R"(
  x = f32[8,4] parameter(0)
  zero = f32[] constant(0)
  a = f32[8,4] reverse(x), dimensions={0}
  ROOT r = f32[4] reduce(a, zero), dimensions={0}, to_apply=add, sharding={replicated}
)");
  EXPECT_THAT(text,
              HasSubstr("reduce(%x, %zero), dimensions={0}, to_apply=%add, sharding={replicated}"));
  EXPECT_THAT(text, Not(HasSubstr("reverse(")));
  const std::string kept = Carried(R"(
  x = f32[8,4] parameter(0)
  zero = f32[] constant(0)
  a = f32[8,4] reverse(x), dimensions={0,1}
  ROOT r = f32[4] reduce(a, zero), dimensions={0}, to_apply=add
)");
  EXPECT_THAT(kept, HasSubstr("reduce(%x, %zero)"));
  EXPECT_THAT(kept, HasSubstr("f32[4]{0} reverse("));
}

TEST(CarriedReverses, FollowTheirDimensions) {
  const std::string text = Carried(R"(
  x = f32[8,4] parameter(0)
  a = f32[8,4] reverse(x), dimensions={0}
  t = f32[4,8] transpose(a), dimensions={1,0}
  h = f32[4,1,8] reshape(t)
  b = f32[2,4,1,8] broadcast(h), dimensions={1,2,3}
  ROOT r = f32[2,4,1,8] reverse(b), dimensions={3}
)");
  EXPECT_THAT(text, HasSubstr("transpose(%x)"));
  EXPECT_THAT(text, Not(HasSubstr("reverse(")));
}

// A broadcast along the dimension is its own reverse; an iota along it is not.
TEST(CarriedReverses, PassWhatIsTheSameReversed) {
  const std::string entry = R"(
  x = f32[8,4] parameter(0)
  v = f32[4] parameter(1)
  a = f32[8,4] reverse(x), dimensions={0}
  w = f32[8,4] WHAT
  s = f32[8,4] multiply(a, w)
  ROOT r = f32[8,4] reverse(s), dimensions={0}
)";
  const auto with = [&](const std::string& what) {
    std::string text = entry;
    return Carried(text.replace(text.find("WHAT"), 4, what));
  };
  EXPECT_THAT(with("broadcast(v), dimensions={1}"), HasSubstr("multiply(%x, %w)"));
  EXPECT_THAT(with("iota(), iota_dimension=1"), HasSubstr("multiply(%x, %w)"));
  EXPECT_THAT(with("iota(), iota_dimension=0"), IsEmpty());
}

TEST(CarriedReverses, StayWhereMoreWouldBeReversed) {
  // Of one value, two.
  EXPECT_THAT(Carried(R"(
  x = f32[8,4] parameter(0)
  a = f32[8,4] reverse(x), dimensions={0}
  s = f32[8,4] negate(a)
  t = f32[8,4] exponential(a)
  ROOT r = (f32[8,4], f32[8,4]) tuple(s, t)
)"),
              IsEmpty());
  // A few rows in place of all.
  EXPECT_THAT(Carried(R"(
  x = f32[8,4] parameter(0)
  a = f32[8,4] reverse(x), dimensions={0}
  ROOT s = f32[2,4] slice(a), slice={[0:2], [0:4]}
)"),
              HasSubstr("slice(%x), slice={[6:8], [0:4]}"));
}

TEST(CarriedReverses, DoNotPassAnnotations) {
  EXPECT_THAT(Carried(R"(
  x = f32[8,4] parameter(0)
  a = f32[8,4] reverse(x), dimensions={0}
  s = f32[8,4] negate(a), sharding={devices=[2,1]<=[2]}
  ROOT r = f32[8,4] reverse(s), dimensions={0}
)"),
              IsEmpty());
}

// Its place is taken by a copy, or by what is left of it.
TEST(CarriedReverses, MayBeAnnotatedThemselves) {
  const auto last = [](const std::string& dimensions) {
    return Carried(absl::StrCat(R"(
  x = f32[8,4] parameter(0)
  a = f32[8,4] reverse(x), dimensions={0}
  s = f32[8,4] negate(a)
  ROOT r = f32[8,4] reverse(s), dimensions={)",
                                dimensions, "}, sharding={devices=[2,1]<=[2]}\n"));
  };
  EXPECT_THAT(last("0"),
              HasSubstr("ROOT %r = f32[8,4]{1,0} copy(%s), sharding={devices=[2,1]<=[2]}"));
  EXPECT_THAT(last("0,1"), HasSubstr("reverse(%s), dimensions={1}, sharding="));
}

TEST(CarriedReverses, OfOtherDimensionsMeetNoFurther) {
  EXPECT_THAT(Carried(R"(
  x = f32[8,4] parameter(0)
  a = f32[8,4] reverse(x), dimensions={0}
  b = f32[8,4] reverse(x), dimensions={1}
  ROOT s = f32[8,4] add(a, b)
)"),
              IsEmpty());
}

}  // namespace
}  // namespace shardcall
