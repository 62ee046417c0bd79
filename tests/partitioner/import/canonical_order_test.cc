// SPDX-License-Identifier: Apache-2.0
// Equal programs whose lines stand in other orders are one program.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/partitioner/import/import_testing.h"

namespace shardcall {
namespace {

std::string Lines(const std::vector<std::string>& lines) {
  return absl::StrCat("  ", absl::StrJoin(lines, "\n  "), "\n");
}

std::string Names(const Program& p, CompId comp) {
  return absl::StrJoin(p.module.comp(comp).instructions, " ", [&](std::string* out, InstrId id) {
    absl::StrAppend(out, p.module.instr(id).name);
  });
}
std::string Names(const std::vector<std::string>& lines, const std::string& header = "") {
  const Program p = Import(EntryModule(Lines(lines), header));
  return Names(p, p.module.entry());
}

TEST(CanonicalOrder, EachInstructionStandsBehindWhatItNeeds) {
  const std::string y = "y = f32[4] parameter(1)", x = "x = f32[4] parameter(0)",
                    a = "a = f32[4] sine(x)", b = "b = f32[4] cosine(y)",
                    c = "c = f32[4] add(b, a)", d = "d = f32[4] tanh(a)",
                    r = "ROOT r = (f32[4], f32[4]) tuple(c, d)";
  EXPECT_EQ(Names({x, y, a, b, c, d, r}), "x y b a c d r");
  EXPECT_EQ(Names({y, x, a, d, b, c, r}), "x y b a c d r");
  EXPECT_EQ(Names({y, b, x, a, c, d, r}), "x y b a c d r");
}

TEST(CanonicalOrder, SoDoComputations) {
  const std::string f = "f {\n  p = f32[4] parameter(0)\n  ROOT e = f32[4] exponential(p)\n}\n";
  const std::string loops =
      "body {\n  s = (f32[4]) parameter(0)\n  v = f32[4] get-tuple-element(s), index=0\n"
      "  u = f32[4] call(v), to_apply=f\n  ROOT t = (f32[4]) tuple(u)\n}\n"
      "cond {\n  s = (f32[4]) parameter(0)\n  ROOT l = pred[] constant(false)\n}\n";
  const std::vector<std::string> one = {"x = f32[4] parameter(0)",
                                        "g = f32[4] call(x), to_apply=f",
                                        "h = f32[4] call(g), to_apply=f",
                                        "i = (f32[4]) tuple(x)",
                                        "w = (f32[4]) while(i), condition=cond, body=body",
                                        "z = f32[4] get-tuple-element(w), index=0",
                                        "ROOT r = (f32[4], f32[4]) tuple(z, h)"};
  const auto imported = [&](const std::vector<std::string>& lines) {
    const Program p =
        Import(absl::StrCat("HloModule m\n", f, loops, "ENTRY main {\n", Lines(lines), "}\n"));
    std::vector<std::string> ops;
    for (int c = 0; c < p.module.num_computations(); ++c) {
      for (InstrId id : p.module.comp(CompId(c)).instructions) {
        ops.push_back(absl::StrCat(c, " ", OpcodeText(p.module.instr(id).opcode)));
      }
    }
    return ops;
  };
  EXPECT_EQ(imported(one), imported({one[0], one[3], one[4], one[5], one[1], one[2], one[6]}));
}

TEST(CanonicalOrder, PlacesAreThoseOfTheText) {
  const std::vector<std::string> lines = {"x = f32[4] parameter(0)", "a = f32[4] sine(x)",
                                          "b = f32[4] cosine(x)", "c = f32[4] tanh(a)",
                                          "ROOT r = (f32[4], f32[4]) tuple(c, b)"};
  const Program p = Import(EntryModule(Lines(lines)));
  ASSERT_EQ(Names(p, p.module.entry()), "x a c b r");
  EXPECT_THAT(p.place, testing::ElementsAre(0, 1, 3, 2, 4));
  // No other places where the text has this order.
  EXPECT_TRUE(
      Import(EntryModule(Lines({lines[0], lines[1], lines[3], lines[2], lines[4]}))).place.empty());
}

TEST(CanonicalOrder, WhatHasEffectsKeepsItsOrder) {
  const std::string x = "x = f32[4] parameter(0)", a = "a = f32[4] sine(x)",
                    e = "e = f32[4] custom-call(x), custom_call_target=\"E\", "
                        "custom_call_has_side_effect=true",
                    f = "f = f32[4] custom-call(a), custom_call_target=\"F\", "
                        "custom_call_has_side_effect=true",
                    r = "ROOT r = (f32[4], f32[4]) tuple(a, f)";
  EXPECT_EQ(Names({x, a, e, f, r}), "x e a f r");
  EXPECT_EQ(Names({x, a, f, e, r}), "x a f e r");
}

TEST(CanonicalOrder, ControlPredecessorsComeFirst) {
  EXPECT_EQ(Names({"x = f32[4] parameter(0)", "a = f32[4] sine(x)", "b = f32[4] cosine(x)",
                   "c = f32[4] tanh(x), control-predecessors={b}",
                   "ROOT r = (f32[4], f32[4], f32[4]) tuple(a, c, b)"}),
            "x a b c r");
}

TEST(CanonicalOrder, AnnotationsThatNothingReadsComeLast) {
  const std::string x = "x = f32[4] parameter(0)", a = "a = f32[4] sine(x)",
                    c = "c = f32[4] custom-call(a), custom_call_target=\"Sharding\", "
                        "custom_call_has_side_effect=true, sharding={devices=[2]<=[2]}",
                    b = "b = f32[4] cosine(x)", r = "ROOT r = (f32[4], f32[4]) tuple(b, a)";
  EXPECT_EQ(Names({x, a, c, b, r}, "num_partitions=2"), Names({x, b, a, c, r}, "num_partitions=2"));
}

TEST(CanonicalOrder, AScheduleIsKept) {
  EXPECT_EQ(Names({"x = f32[4] parameter(0)", "a = f32[4] sine(x)", "b = f32[4] cosine(x)",
                   "ROOT r = (f32[4], f32[4]) tuple(b, a)"},
                  "is_scheduled=true"),
            "x a b r");
}

}  // namespace
}  // namespace shardcall
