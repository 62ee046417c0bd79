// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "shardcall/sharding/base/status.h"
#include "text_util.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ParserErrors, UnknownOpcodeShowsPlaceCaretAndTheNearestName) {
  EXPECT_EQ(ErrorOf("HloModule m\n\nENTRY %e {\n  %a = f32[] parameter(0)\n"
                    "  ROOT %s = f32[] addd(%a, %a)\n}\n"),
            "E004 Unknown opcode at t.hlo:5:19: expected an HLO opcode, found 'addd'. "
            "Fix: did you mean 'add'?\n"
            "  ROOT %s = f32[] addd(%a, %a)\n"
            "                  ^");
}

TEST(ParserErrors, UnknownAttributeNamesTheOp) {
  EXPECT_EQ(ErrorOf(InEntry("  %a = f32[2] parameter(0)\n"
                            "  ROOT %s = f32[2] reverse(%a), dimension={0}")),
            "E005 Unknown attribute at t.hlo:5:33: expected an attribute of reverse, found "
            "'dimension'. Fix: did you mean 'dimensions'?\n"
            "  ROOT %s = f32[2] reverse(%a), dimension={0}\n"
            "                                ^");
}

TEST(ParserErrors, UndefinedOperand) {
  EXPECT_EQ(ErrorOf(InEntry("  ROOT %s = f32[] negate(%ab)")),
            "E008 Unknown instruction at t.hlo:4:26: expected one that stands before its use, "
            "found '%ab'. Fix: define the instruction before this one\n"
            "  ROOT %s = f32[] negate(%ab)\n"
            "                         ^");
}

TEST(ParserErrors, LongLinesAreCutAroundTheCaret) {
  const std::string blanks(200, ' ');
  const std::string error = ErrorOf("HloModule m," + blanks + "bad=1," + blanks + "more=2");
  EXPECT_EQ(error,
            "E005 Unknown module attribute at t.hlo:1:213: expected an attribute like "
            "num_partitions, found 'bad'. Fix: change what stands at the caret to that\n..." +
                std::string(60, ' ') + "bad=1," + std::string(54, ' ') + "...\n" +
                std::string(63, ' ') + "^");
}

struct Case {
  const char* lines;
  const char* error;  // how the message starts
};

class EntryErrors : public testing::TestWithParam<Case> {};

TEST_P(EntryErrors, AreDiagnosed) {
  EXPECT_THAT(ErrorOf(InEntry(GetParam().lines)), StartsWith(GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    All, EntryErrors,
    testing::Values(
        Case{"", "E001 Syntax error at t.hlo:5:1: expected an instruction, found '}'"},
        Case{"  %a = f32[", "E001 Syntax error at t.hlo:5:1: expected an integer"},
        Case{"  %a = f33[] parameter(0)", "E010 Unknown element type at t.hlo:4:8"},
        Case{"  %a = f32[2]{1} parameter(0)", "E010 A layout does not fit the shape"},
        Case{"  %a = f32[2,2]{0,0} parameter(0)", "E010 A layout does not fit the shape"},
        Case{"  %a = f32[-1] parameter(0)", "E003 An integer is out of range"},
        Case{"  %a = f32[99999999999999999999] parameter(0)", "E003 An integer is out of range"},
        Case{"  %a = f32[] parameter(1)", "E013 A parameter number is missing"},
        Case{"  %a = f32[] parameter(4000000000)", "E013 A parameter number is too large"},
        Case{"  %a = f32[] parameter(0)\n  %b = f32[] parameter(0)",
             "E013 A parameter number stands twice at t.hlo:5:24"},
        Case{"  %a = f32[] parameter(0)\n  %a = f32[] negate(%a)",
             "E009 An instruction is defined twice at t.hlo:5:3"},
        Case{"  ROOT %a = f32[] parameter(0)\n  ROOT %b = f32[] negate(%a)", "E009 A second ROOT"},
        Case{"  %a = f32[] parameter(0)\n  %b = f32[] add(%a)",
             "E012 Wrong number of operands of add at t.hlo:5:14: expected 2, found 1"},
        Case{"  %a = f32[2] parameter(0)\n  %b = f32[2] reverse(%a)",
             "E006 An attribute is missing at t.hlo:5:15: expected dimensions= on reverse"},
        Case{"  %a = f32[2] parameter(0)\n  %b = f32[2] reverse(%a), dimensions={0}, "
             "dimensions={0}",
             "E007 An attribute stands twice"},
        Case{"  %a = f32[2] parameter(0)\n  %b = pred[2] compare(%a, %a), direction=GTE",
             "E019 Unknown value of the attribute direction"},
        Case{"  %a = f32[2] constant({1})", "E011 A literal has too few elements"},
        Case{"  %a = f32[2] constant({1, 2, 3})", "E011 A literal does not fit its shape"},
        Case{"  %a = f32[2,2] constant({{1, 2}})", "E011 A literal has too few elements"},
        Case{"  %a = f32[1000000000000] constant({1})", "E011 A literal has too few elements"},
        Case{"  %a = s8[] constant(200)", "E003 An integer is out of range"},
        Case{"  %a = s32[] constant(1.5)", "E011 A literal does not fit its type"},
        Case{"  %a = f16[] constant(65520)", "E003 A number is out of range"},
        Case{"  %a = f32[] constant(1e999)", "E003 A number is out of range"},
        Case{"  %a = f32[] constant(nan(0x0))", "E011 A NaN has an invalid payload"},
        Case{"  %a = token[] constant(1)", "E011 A literal of this type does not exist"},
        Case{"  %a = f32[] parameter(0), sharding={devices=[2}", "E016 Invalid sharding"},
        Case{"  %a = f32[] parameter(0), sharding={bogus}", "E016 Invalid sharding"},
        Case{"  %a = f32[] parameter(0), metadata={op=\"x\"}", "E005 Unknown metadata field"},
        Case{"  %a = f32[] parameter(0), metadata={op_name=\"x", "E002 A string is not closed"},
        Case{"  %a = f32[] /* parameter(0)", "E002 A comment is not closed"},
        Case{"  %a = f32[] parameter(0), backend_config={{}",
             "E002 The text ends too early at t.hlo:5:2: expected an instruction or '}'"},
        Case{"  %a = f32[] call(), to_apply=%f", "E008 Unknown computation"},
        Case{"  %a = f32[] iota(), iota_dimension=99999999999999999999",
             "E003 An integer is out of range"},
        Case{"  %a = f32[] parameter(0)\n  %b = convert(%a)", "E015 The shape cannot be inferred"},
        Case{"  %a = f32[8] parameter(0)\n  %d = f32[8] all-to-all-done(%a)",
             "E020 The operand is not an async start or update"},
        Case{"  %a = f32[8] parameter(0)\n  %s = (f32[8], f32[8]) all-to-all-start(%a)",
             "E020 The shape does not fit an async start"},
        Case{"  %a = f32[8] parameter(0)\n  %g = f32[8] all-reduce(%a), "
             "replica_groups=[2,3]<=[8], to_apply=%f",
             "E019 Invalid iota replica groups"},
        Case{"  %a = f32[8] parameter(0)\n  %g = f32[8] negate(f32[4] %a)",
             "E010 An operand's shape is not that of its instruction"}));

// Each with the place, the source line and a caret under what is wrong.
TEST(ParserErrors, TextsThatXlaRefusesAreDiagnosedWithTheirPlace) {
  const auto cases = TextCases("refused.txt");
  EXPECT_GT(cases.size(), 80u);
  for (const auto& [title, text] : cases) {
    const std::string error = ErrorOf(text);
    EXPECT_THAT(error, StartsWith(title.substr(0, 4))) << title;
    EXPECT_THAT(error, testing::ContainsRegex(" at t\\.hlo:[0-9]+:[0-9]+")) << title;
    EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 2) << title << "\n" << error;
    EXPECT_EQ(error.back(), '^') << title;
  }
}

// XLA aborts on these, or takes them for something else.
TEST(ParserErrors, TextsThatXlaMishandles) {
  const auto entry = [](const char* lines) { return ErrorOf(InEntry(lines)); };
  EXPECT_THAT(entry("  %a = f32[] parameter(1)"), StartsWith("E013"));
  EXPECT_THAT(entry("  %a = f32[] constant(true)"), StartsWith("E001"));
  EXPECT_THAT(entry("  %a = f32[2] parameter(0)\n  %b = f32[2] add(%a,,%a)"), StartsWith("E001"));
  EXPECT_THAT(entry("  %a = f32[3] constant({1,,2,3})"), StartsWith("E001"));
  EXPECT_THAT(entry("  %a = f32[3] constant(1)"), StartsWith("E001"));
  EXPECT_THAT(entry("  %a = f32[8] parameter(0)\n  %b = f32[8] all-to-all(%a), dimensions={0}, "
                    "replica_groups=[2,4]<=[2,4]T(0,0)"),
              StartsWith("E019"));
  EXPECT_THAT(entry("  %a = f32[8] parameter(0)\n  %b = f32[8] all-to-all(%a), channel_id=1, "
                    "dimensions={0}, replica_groups=mesh['a'=2,'b'=4] {'c'}"),
              StartsWith("E019"));
  EXPECT_THAT(entry("  %a = f32[8] parameter(0)\n"
                    "  %s = ((f32[8]), f32[8]) all-gather-done-start(%a)"),
              StartsWith("E004"));
}

TEST(ParserErrors, HeaderAndEntry) {
  EXPECT_THAT(ErrorOf(""), StartsWith("E002 The text ends too early at t.hlo:1:1"));
  EXPECT_THAT(ErrorOf("HloModule"), StartsWith("E002 The text ends too early"));
  EXPECT_THAT(ErrorOf("HloModule m"), StartsWith("E002 The text ends too early"));
  EXPECT_THAT(ErrorOf("HloModule m, num_partitions=0"), StartsWith("E003"));
  EXPECT_THAT(ErrorOf("HloModule m, num_partition=2"), HasSubstr("did you mean"));
  EXPECT_THAT(ErrorOf("HloModule m\nENTRY a { p = f32[] parameter(0) }\n"
                      "ENTRY b { p = f32[] parameter(0) }"),
              StartsWith("E017 A second ENTRY computation at t.hlo:3:1"));
  EXPECT_THAT(ErrorOf("HloModule m\na { p = f32[] parameter(0) }\na { p = f32[] parameter(0) }"),
              StartsWith("E009 A computation is defined twice"));
  EXPECT_THAT(ErrorOf("HloModule m\nENTRY %a (p: f32[]) -> s32[] { p = f32[] parameter(0) }"),
              StartsWith("E018 The signature's result is not the root's shape"));
  EXPECT_THAT(ErrorOf("HloModule m\n\nFileNames\n1 \"a\"\n\nENTRY a { p = f32[] parameter(0) }"),
              StartsWith("E001 Syntax error at t.hlo:6:1: expected a row or FunctionNames"));
}

TEST(ParserErrors, NulBytesAreNamed) {
  EXPECT_THAT(ErrorOf(std::string("HloModule m\n\0\n", 14)),
              StartsWith("E001 The text holds a NUL byte at t.hlo:2:1"));
}

TEST(ParserErrors, CodesAreReadable) {
  const auto m = Parse("nonsense");
  ASSERT_FALSE(m.ok());
  EXPECT_EQ(m.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DiagnosticCode(m.status()).substr(0, 1), "E");
}

}  // namespace
}  // namespace shardcall
