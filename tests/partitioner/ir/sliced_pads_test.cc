// SPDX-License-Identifier: Apache-2.0
// Slices of padded arrays are pads of what was padded.
#include "shardcall/partitioner/ir/simplify/sliced_pads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/ir/simplify/plain_ops.h"
#include "tests/partitioner/ir/text_util.h"

namespace shardcall {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// The text of the module with this entry, after it; empty if nothing changes.
std::string Plain(const std::string& entry) {
  return TextAfter(absl::StrCat("HloModule m\n\nENTRY main {\n", entry, "}\n"), InPlainOps);
}

constexpr char kShifted[] = R"(
  x = f32[8,6] parameter(0)
  z = f32[] constant(0)
  p = f32[10,8] pad(x, z), padding=1_1x1_1
  ROOT r = f32[8,6] slice(p), slice={[2:10], [1:7]}
)";

TEST(SlicedPads, AreShifts) {
  EXPECT_THAT(Plain(kShifted), HasSubstr("f32[8,6]{1,0} pad(%x, %z), padding=-1_1x0_0"));
  EXPECT_THAT(Plain(absl::StrReplaceAll(kShifted, {{"[2:10]", "[0:8]"}})),
              HasSubstr("pad(%x, %z), padding=1_-1x0_0"));
}

TEST(SlicedPads, AreSlicesWhereNoPaddingIsLeft) {
  EXPECT_THAT(Plain(absl::StrReplaceAll(kShifted, {{"f32[8,6] slice", "f32[5,4] slice"},
                                                   {"[2:10], [1:7]", "[3:8], [2:6]"}})),
              HasSubstr("f32[5,4]{1,0} slice(%x), slice={[2:7], [1:5]}"));
}

TEST(SlicedPads, AreWhatWasPaddedWhereAllOfItIsLeft) {
  const std::string text = Plain(R"(
  x = f32[8] parameter(0)
  z = f32[] constant(0)
  p = f32[10] pad(x, z), padding=1_1
  s = f32[8] slice(p), slice={[1:9]}
  ROOT r = f32[8] negate(s)
)");
  EXPECT_THAT(text, AllOf(HasSubstr("%s = f32[8]{0} copy(%x)"), HasSubstr("negate(%s)")));
}

TEST(SlicedPads, StayWhereTheyAreMoreThanPads) {
  // Every other element; elements between those of x; nothing of x; an annotation.
  EXPECT_THAT(Plain(absl::StrReplaceAll(
                  kShifted, {{"[2:10]", "[0:10:2]"}, {"r = f32[8,6]", "r = f32[5,6]"}})),
              IsEmpty());
  EXPECT_THAT(Plain(absl::StrReplaceAll(kShifted, {{"padding=1_1x1_1", "padding=1_1_1x1_1"},
                                                   {"f32[10,8]", "f32[17,8]"}})),
              IsEmpty());
  EXPECT_THAT(Plain(absl::StrReplaceAll(kShifted,
                                        {{"[2:10]", "[9:10]"}, {"r = f32[8,6]", "r = f32[1,6]"}})),
              IsEmpty());
  EXPECT_THAT(Plain(absl::StrReplaceAll(
                  kShifted, {{"padding=1_1x1_1", "padding=1_1x1_1, sharding={replicated}"}})),
              IsEmpty());
}

TEST(SlicedPads, KeepTheAnnotationOfTheSlice) {
  const std::string shifted =
      Plain(absl::StrReplaceAll(kShifted, {{"[1:7]}", "[1:7]}, sharding={devices=[2,1]<=[2]}"}}));
  EXPECT_THAT(shifted, HasSubstr("padding=-1_1x0_0, sharding={devices=[2,1]<=[2]}"));
  EXPECT_THAT(
      Plain(absl::StrReplaceAll(
          kShifted, {{"[2:10]", "[1:9]"}, {"[1:7]}", "[1:7]}, sharding={devices=[2,1]<=[2]}"}})),
      HasSubstr("copy(%x), sharding={devices=[2,1]<=[2]}"));
}

}  // namespace
}  // namespace shardcall
