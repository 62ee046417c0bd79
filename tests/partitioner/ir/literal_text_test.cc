// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/lex/literal_text.h"

#include <cmath>
#include <cstring>

#include "shardcall/partitioner/ir/float_format.h"
#include "text_util.h"

namespace shardcall {
namespace {

// Reads `shape constant(value)` and prints the value again.
std::string Again(const std::string& shape, const std::string& value) {
  const std::string line = PrintedLine("  ROOT %c = " + shape + " constant(" + value + ")", "c");
  const size_t open = line.find("constant(");
  if (open == std::string::npos) return line;
  return line.substr(open + 9, line.size() - open - 10);
}

const Literal* LiteralOf(const Module& m) {
  return m.instr(m.comp(m.entry()).root).as<ConstantAttrs>().literal;
}

TEST(LiteralText, FloatsPrintWithSixDigitsOrNineWhereSixDoNotReadBack) {
  EXPECT_EQ(Again("f32[]", "1000000"), "1e+06");
  EXPECT_EQ(Again("f32[]", "999999"), "999999");
  EXPECT_EQ(Again("f32[]", "0.1"), "0.1");
  EXPECT_EQ(Again("f32[]", "3.14159274"), "3.14159274");
  EXPECT_EQ(Again("f32[]", "-inf"), "-inf");
  EXPECT_EQ(Again("f64[]", "3.141592653589793"), "3.1415926535897931");
  EXPECT_EQ(Again("bf16[]", "0.1"), "0.1001");
  EXPECT_EQ(Again("f16[]", "0.1"), "0.099976");
}

// XLA prints -0, as in dumps of JAX, and reads that as the integer 0: its own text
// does not come back. We read what the dumped program had, and write what XLA
// reads right.
TEST(LiteralText, NegativeZeroIsKeptAndWrittenSoThatXlaKeepsIt) {
  const auto m = Parse(InEntry("  ROOT %c = f32[] constant(-0)"));
  ASSERT_TRUE(m.ok());
  float value;
  std::memcpy(&value, LiteralOf(*m)->data.data(), 4);
  EXPECT_TRUE(std::signbit(value));
  for (const char* text : {"-0.0", "-0.", "-0e0", "-0e5", "-1e-400"}) {
    EXPECT_EQ(Again("f32[]", text), "-0.0") << text;
  }
  EXPECT_EQ(Again("f8e5m2[2]", "{-0, 1}"), "{-0.0, 1}");
  EXPECT_EQ(Again("c64[]", "(-0, 1)"), "(-0.0, 1)");
  EXPECT_EQ(Again("s32[]", "-0"), "0");
}

TEST(LiteralText, NanPayloadsAreKept) {
  EXPECT_EQ(Again("f32[]", "nan"), "nan");
  EXPECT_EQ(Again("f32[]", "-nan(0x1f)"), "-nan(0x1f)");
  EXPECT_EQ(Again("f32[]", "nan(0x400000)"), "nan");
  EXPECT_EQ(Again("bf16[]", "nan(0x1)"), "nan(0x1)");
  EXPECT_EQ(Again("f8e4m3fn[]", "nan"), "nan");
}

TEST(LiteralText, ArraysPrintWithXlasBlanksAndIndexComments) {
  EXPECT_EQ(Again("s32[3]", "{1,2,3}"), "{1, 2, 3}");
  EXPECT_EQ(Again("s32[2,2]", "{{1,2},{3,4}}"), "{ { 1, 2 }, { 3, 4 } }");
  EXPECT_EQ(Again("s32[2,1]", "{{1},{2}}"), "{ {1}, {2} }");
  EXPECT_EQ(Again("s32[4,0]", "{{},{},{},{}}"), "{ {}, {}, {}, {} }");
  EXPECT_EQ(Again("s32[0,4]", "{}"), "{  }");
  EXPECT_EQ(Again("s32[2,0,3]", "{{},{}}"), "{ {  }, {  } }");
  EXPECT_EQ(Again("s32[1,2,1,2]", "{{{{1,2}},{{3,4}}}}"),
            "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } }, { /*i1=1*/ { 3, 4 } } } }");
  EXPECT_EQ(Again("pred[2]", "{true, 0}"), "{1, 0}");
  EXPECT_EQ(Again("pred[]", "7"), "true");
  EXPECT_EQ(Again("c64[]", "(1, -2.5)"), "(1, -2.5)");
  EXPECT_EQ(Again("(f32[], s32[2])", "(1, {2, 3})"), "( 1, {2, 3} )");
}

TEST(LiteralText, CommasBetweenElementsAreOptional) {
  EXPECT_EQ(Again("s32[2,2]", "{{1 2} {3 4}}"), "{ { 1, 2 }, { 3, 4 } }");
}

TEST(LiteralText, IntegersCoverTheirWholeRange) {
  EXPECT_EQ(Again("s64[]", "-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(Again("u64[]", "18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(Again("u64[]", "-1"), "18446744073709551615");
  EXPECT_EQ(Again("s4[2]", "{-8, 7}"), "{-8, 7}");
  EXPECT_EQ(Again("u8[]", "255"), "255");
}

TEST(LiteralText, ElidedConstantsAreKnownAsSuch) {
  const auto m = Parse(InEntry("  ROOT %c = f32[100] constant({...})"));
  ASSERT_TRUE(m.ok());
  EXPECT_TRUE(LiteralOf(*m)->elided);
  EXPECT_EQ(Again("f32[100]", "{...}"), "{...}");
}

TEST(LiteralText, EqualConstantsShareOneLiteral) {
  const auto m =
      Parse(InEntry("  %a = f32[2] constant({1, 2})\n  %b = f32[2] constant({1.0, 2e0})\n"
                    "  ROOT %t = (f32[2], f32[2]) tuple(%a, %b)"));
  ASSERT_TRUE(m.ok());
  EXPECT_EQ(m->instr(InstrId(0)).attrs, m->instr(InstrId(1)).attrs);
}

// Every pattern of a narrow type decodes to a value that encodes to it again.
TEST(NarrowFloat, EncodingInvertsDecoding) {
  for (int t = 0; t < kNumElementTypes; ++t) {
    const auto type = static_cast<ElementType>(t);
    if (!IsFloat(type) || ElementTypeBits(type) > 16) continue;
    for (uint64_t bits = 0; bits < uint64_t{1} << ElementTypeBits(type); ++bits) {
      const double value = FloatFromBits(type, bits);
      if (std::isnan(value)) continue;
      EXPECT_EQ(EncodeFloat(type, value), bits) << ElementTypeName(type) << " " << value;
    }
  }
}

TEST(NarrowFloat, RoundingIsToNearestEven) {
  // 1 + 2^-8 lies halfway between two bf16 values; the even one is 1.
  EXPECT_EQ(FloatFromBits(ElementType::kBF16, EncodeFloat(ElementType::kBF16, 1.00390625)), 1.0);
  EXPECT_EQ(FloatFromBits(ElementType::kBF16, EncodeFloat(ElementType::kBF16, 1.01171875)),
            1.015625);
  EXPECT_TRUE(std::isinf(FloatFromBits(ElementType::kF16, EncodeFloat(ElementType::kF16, 65520))));
  EXPECT_TRUE(
      std::isnan(FloatFromBits(ElementType::kF8E4M3FN, EncodeFloat(ElementType::kF8E4M3FN, 500))));
}

TEST(MakeLiteral, ScalarsConvertToEveryType) {
  Context context;
  for (int t = 0; t < kNumElementTypes; ++t) {
    const auto type = static_cast<ElementType>(t);
    if (!IsArrayType(type) || ElementTypeBits(type) == 0) continue;
    std::string text;
    AppendLiteral(*MakeScalarIntLiteral(context, type, 1), &text);
    const bool one_bit_signed = type == ElementType::kS1;
    EXPECT_EQ(text, type == ElementType::kPred ? "true"
                    : IsComplex(type)          ? "(1, 0)"
                    : one_bit_signed           ? "-1"
                                               : "1")
        << ElementTypeName(type);
  }
}

}  // namespace
}  // namespace shardcall
