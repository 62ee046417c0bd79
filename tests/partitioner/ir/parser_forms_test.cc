// SPDX-License-Identifier: Apache-2.0
// Texts that XLA accepts beside the one form that it prints.
#include "absl/strings/str_replace.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "text_util.h"

namespace shardcall {
namespace {

TEST(ParserForms, TextsThatXlaReadsAreReadAndPrintTheSameAgain) {
  const auto cases = TextCases("accepted.txt");
  EXPECT_GT(cases.size(), 100u);
  for (const auto& [title, text] : cases) {
    const auto module = Parse(text);
    ASSERT_TRUE(module.ok()) << title << "\n" << module.status().message();
    const std::string printed = PrintModule(*module);
    const auto again = Parse(printed);
    ASSERT_TRUE(again.ok()) << title << "\n" << again.status().message();
    EXPECT_EQ(PrintModule(*again), printed) << title;
  }
}

TEST(ParserForms, LineEndsMayBeThoseOfDos) {
  for (const auto& [title, text] : TextCases("accepted.txt")) {
    std::string dos;
    for (char c : text) dos += c == '\n' ? "\r\n" : std::string(1, c);
    const auto module = Parse(dos);
    ASSERT_TRUE(module.ok()) << title << "\n" << module.status().message();
    // Strings that span lines keep what they hold, escaped or not.
    const std::string printed =
        absl::StrReplaceAll(PrintModule(*module), {{"\\r\\n", "\\n"}, {"\r\n", "\n"}});
    EXPECT_EQ(printed, PrintModule(*Parse(text))) << title;
  }
}

TEST(ParserForms, AByteOrderMarkMayComeFirst) {
  const std::string text = "HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }";
  const auto m = Parse("\xEF\xBB\xBF" + text);
  ASSERT_TRUE(m.ok()) << m.status().message();
  EXPECT_EQ(PrintModule(*m), PrintModule(*Parse(text)));
  EXPECT_FALSE(Parse(text + "\xEF\xBB\xBF").ok());
}

TEST(ParserForms, ModuleWithoutHeaderIsNamedAfterItsEntry) {
  const auto m = Parse("f { p = f32[] parameter(0)  ROOT n = f32[] negate(p) }");
  ASSERT_TRUE(m.ok()) << m.status().message();
  EXPECT_EQ(m->header.name, "module_f");
  EXPECT_EQ(m->comp(m->entry()).parameters.size(), 1u);
}

TEST(ParserForms, LastComputationIsTheEntryAndLastInstructionTheRoot) {
  const auto m = Parse(
      "HloModule m\nf { p = f32[] parameter(0) }\n"
      "g { a = f32[] parameter(0) b = f32[] negate(a) }");
  ASSERT_TRUE(m.ok()) << m.status().message();
  EXPECT_EQ(m->comp(m->entry()).name, "g");
  EXPECT_EQ(m->instr(m->comp(m->entry()).root).name, "b");
}

TEST(ParserForms, SingleInstructionMakesParametersOfItsOperands) {
  const auto m = Parse(
      "%d = f32[2,4] dot(f32[2,3] %a, f32[3,4] %b), "
      "lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  ASSERT_TRUE(m.ok()) << m.status().message();
  EXPECT_TRUE(m->header.is_scheduled);
  ASSERT_EQ(m->comp(m->entry()).parameters.size(), 2u);
  EXPECT_EQ(m->instr(m->comp(m->entry()).parameters[1]).name, "b");
  EXPECT_TRUE(Parse("f32[2] negate(f32[2] %a)").ok());
  EXPECT_TRUE(Parse("f32[2] negate(f32[2])").ok());
}

TEST(ParserForms, CommentsStandAnywhere) {
  EXPECT_EQ(PrintedLine("  %p = f32[2]{0} parameter(/*zero*/0) // the only one\n"
                        "  ROOT %n = f32[/*two*/2] /**/ negate(/*index=5*/%p)",
                        "n"),
            "%n = f32[2]{0} negate(%p)");
}

TEST(ParserForms, ShapesMayBeLeftOutWhereTheyFollow) {
  EXPECT_EQ(PrintedLine("  %p = f32[2,3]{0,1} parameter(0)\n  ROOT %n = negate(%p)", "n"),
            "%n = f32[2,3]{0,1} negate(%p)");
  EXPECT_EQ(PrintedLine("  %p = f32[2,3] parameter(0)\n"
                        "  ROOT %n = transpose(%p), dimensions={1,0}",
                        "n"),
            "%n = f32[3,2]{0,1} transpose(%p), dimensions={1,0}");
}

TEST(ParserForms, MissingLayoutIsDescending) {
  EXPECT_EQ(PrintedLine("  ROOT %p = (f32[2,3], token[], s32[]) parameter(0)", "p"),
            "%p = (f32[2,3]{1,0}, token[], s32[]) parameter(0)");
}

TEST(ParserForms, OperandsMayBeOpsWithoutAttributes) {
  const auto m =
      Parse(InEntry("  %p = f32[] parameter(0)\n"
                    "  ROOT %n = f32[] add(negate(%p), f32[] constant(2))"));
  ASSERT_TRUE(m.ok()) << m.status().message();
  const std::string text = PrintModule(*m);
  EXPECT_NE(text.find("%negate = f32[] negate(%p)"), std::string::npos) << text;
  EXPECT_NE(text.find("%n = f32[] add(%negate, %constant)"), std::string::npos) << text;
}

TEST(ParserForms, TupleElementsMayBeNamedByIndex) {
  EXPECT_EQ(PrintedLine("  %t = (f32[], (s32[], f32[2])) parameter(0)\n"
                        "  ROOT %n = f32[2] negate(%t#1#1)",
                        "n"),
            "%n = f32[2]{0} negate(%get-tuple-element.1)");
  // Operands that name the same element are one instruction.
  const auto m =
      Parse(InEntry("  %t = (f32[2], f32[2]) parameter(0)\n  %a = f32[2] add(%t#0, %t#0)\n"
                    "  ROOT %n = f32[2] add(%a, %t#1), metadata={op_name=\"n\"}"));
  ASSERT_TRUE(m.ok()) << m.status().message();
  EXPECT_EQ(m->num_instructions(), 5);
}

TEST(ParserForms, ComputationsMayStandInline) {
  const auto m =
      Parse(InEntry("  %p = f32[4] parameter(0)\n  %z = f32[] constant(0)\n"
                    "  ROOT %r = f32[] reduce(%p, %z), dimensions={0}, to_apply={\n"
                    "    a = f32[] parameter(0)\n    b = f32[] parameter(1)\n"
                    "    ROOT c = f32[] add(a, b)\n  }, metadata={op_name=\"r\"}"));
  ASSERT_TRUE(m.ok()) << m.status().message();
  EXPECT_EQ(m->num_computations(), 2);
  // Printed as a computation before its use, under a name of its own.
  const auto again = Parse(PrintModule(*m));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(m->instr(m->comp(m->entry()).root).metadata->op_name, "r");
}

TEST(ParserForms, PrintedWithoutPercentSignsAndSignatures) {
  const auto m = Parse(
      "HloModule m\n\nENTRY e.3 {\n  Arg_0.1 = f32[2]{0} parameter(0)\n"
      "  ROOT neg.2 = f32[2]{0} negate(Arg_0.1)\n}\n");
  ASSERT_TRUE(m.ok()) << m.status().message();
  EXPECT_NE(PrintModule(*m).find("ENTRY %e.3 (Arg_0.1: f32[2]) -> f32[2] {"), std::string::npos);
}

TEST(ParserForms, AsyncSugarStandsForAWrappedComputation) {
  const auto m = Parse(
      InEntry("  %p = f32[8] parameter(0)\n"
              "  %s = ((f32[8]), f32[8], s32[]) all-to-all-start(%p), replica_groups={{0,1}}, "
              "dimensions={0}\n  ROOT %d = f32[8] all-to-all-done(%s)"));
  ASSERT_TRUE(m.ok()) << m.status().message();
  ASSERT_EQ(m->num_computations(), 2);
  const Instruction& start = m->instr(m->operand(m->comp(m->entry()).root, 0));
  EXPECT_EQ(start.opcode, Opcode::kAsyncStart);
  const Instruction& op = m->instr(m->comp(start.as<AsyncAttrs>().calls).root);
  EXPECT_EQ(op.opcode, Opcode::kAllToAll);
  EXPECT_EQ(op.as<CollectiveAttrs>().dimension, 0);
}

TEST(ParserForms, ThePaddingOfAScalarIsEmpty) {
  const auto m = Parse(
      "ENTRY f {\n  x = f32[] parameter(0)\n  y = f32[] pad(x, x), padding=\n"
      "  z = f32[] pad(y, x), padding=, metadata={op_name=\"z\"}\n"
      "  ROOT w = f32[] pad(z, x), padding= }");
  ASSERT_TRUE(m.ok()) << m.status().message();
  const std::string printed = PrintModule(*m);
  const auto again = Parse(printed);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(PrintModule(*again), printed);
  // Of an array it is too little, and what is none of it is said.
  const auto array = Parse(
      "ENTRY f { x = f32[2] parameter(0) y = f32[] parameter(1)\n"
      "  ROOT p = f32[2] pad(x, y), padding=\n}");
  ASSERT_TRUE(array.ok()) << array.status().message();
  EXPECT_FALSE(VerifyModule(*array, "t.hlo").ok());
  EXPECT_FALSE(
      Parse("ENTRY f { x = f32[] parameter(0) ROOT p = f32[] pad(x, x), padding=q }").ok());
}

TEST(ParserForms, AttributesComeInAnyOrder) {
  EXPECT_EQ(PrintedLine("  %p = f32[4,4] parameter(0)\n"
                        "  ROOT %d = f32[4,4] dot(%p, %p), metadata={op_name=\"d\"}, "
                        "rhs_contracting_dims={0}, sharding={replicated}, "
                        "lhs_contracting_dims={1}",
                        "d"),
            "%d = f32[4,4]{1,0} dot(%p, %p), lhs_contracting_dims={1}, "
            "rhs_contracting_dims={0}, sharding={replicated}, metadata={op_name=\"d\"}");
}

// Since jaxlib 0.12, XLA prints the order of a comparison and not its type.
TEST(ParserForms, TheOrderOfAComparisonSaysItsType) {
  const auto line = [](const std::string& type, const std::string& attributes) {
    const std::string found = PrintedLine("  %p = " + type + "[2] parameter(0)\n" +
                                              "  ROOT %c = pred[2] compare(%p, %p), " + attributes,
                                          "c");
    return found.substr(found.find("direction"));
  };
  EXPECT_EQ(line("f32", "direction=LT, order=TOTAL"), "direction=LT, type=TOTALORDER");
  EXPECT_EQ(line("bf16", "order=TOTAL, direction=GE"), "direction=GE, type=TOTALORDER");
  EXPECT_EQ(line("f32", "direction=LT, order=PARTIAL"), "direction=LT");
  EXPECT_EQ(line("c64", "direction=EQ, order=PARTIAL"), "direction=EQ");
  for (const char* type : {"s32", "u8", "pred"}) {
    EXPECT_EQ(line(type, "direction=LT, order=TOTAL"), "direction=LT") << type;
    EXPECT_EQ(line(type, "direction=LT, order=PARTIAL"), "direction=LT") << type;
  }
}

// The default, which XLA before jaxlib 0.12 neither writes nor reads.
TEST(ParserForms, ThatTopKIsStableIsNotPrinted) {
  const auto line = [](const std::string& stable) {
    return PrintedLine("  %p = f32[8] parameter(0)\n  ROOT %t = (f32[2], s32[2]) topk(%p), k=2, " +
                           std::string("largest=true") + stable,
                       "t");
  };
  EXPECT_EQ(line(", is_stable=true"), line(""));
  EXPECT_NE(line(", is_stable=false").find("largest=true, is_stable=false"), std::string::npos);
}

TEST(ParserForms, StringsAreUnescapedAndEscapedAgain) {
  const auto m =
      Parse(InEntry("  ROOT %p = f32[] parameter(0), "
                    "frontend_attributes={b=\"a\\\"\\n\\303\\244\",a={x = \"}\"}}"));
  ASSERT_TRUE(m.ok()) << m.status().message();
  const FrontendAttributes* f = m->instr(InstrId(0)).frontend;
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->Find("b"), "a\"\n\303\244");
  EXPECT_EQ(f->Find("a"), "{x = \"}\"}");
  EXPECT_EQ(f->Find("c").data(), nullptr);
  EXPECT_NE(PrintInstruction(*m, InstrId(0))
                .find("frontend_attributes={a={x = \"}\"},b=\"a\\\"\\n\\303\\244\"}"),
            std::string::npos);
}

TEST(ParserForms, OneShardingOnATupleIsPrintedForEachLeaf) {
  EXPECT_EQ(PrintedLine("  ROOT %p = (f32[], f32[2]) parameter(0), sharding={replicated}", "p"),
            "%p = (f32[], f32[2]{0}) parameter(0), sharding={{replicated}, {replicated}}");
}

TEST(ParserForms, IotaGroupsAreSimplified) {
  const auto line = [](const std::string& groups) {
    return PrintedLine(
        "  %p = f32[8] parameter(0)\n  ROOT %g = f32[8] all-to-all(%p), "
        "replica_groups=" +
            groups + ", dimensions={0}",
        "g");
  };
  EXPECT_NE(line("[2,2]<=[2,2]T(0,1)").find("replica_groups=[2,2]<=[4],"), std::string::npos);
  EXPECT_NE(line("[4,2]<=[2,1,4]T(2,1,0)").find("[4,2]<=[2,4]T(1,0),"), std::string::npos);
}

TEST(ParserForms, FrameIdsOutsideTheTablesMeanNone) {
  EXPECT_EQ(PrintedLine("  ROOT %p = f32[] parameter(0), metadata={op_name=\"a\" "
                        "stack_frame_id=7}",
                        "p"),
            "%p = f32[] parameter(0), metadata={op_name=\"a\"}");
}

// As the binary form has them, which keeps values and no texts.
TEST(ParserForms, NumbersOfAttributesArePrintedWithTheFewestDigits) {
  const auto line = [](const std::string& attribute) {
    return PrintedLine("  %p = f32[] parameter(0)\n  ROOT %t = f32[] tanh(%p), " + attribute, "t");
  };
  EXPECT_EQ(line("result_accuracy={tolerance={rtol=1.0e-4,ulps=007}}"),
            "%t = f32[] tanh(%p), result_accuracy={tolerance={atol=0,rtol=0.0001,ulps=7}}");
  EXPECT_EQ(line("statistics={count=1.50,visualizing_index=00}"),
            "%t = f32[] tanh(%p), statistics={visualizing_index=0,count=1.5}");
  EXPECT_EQ(line("statistics={visualizing_index=1}"), "%t = f32[] tanh(%p)");
}

}  // namespace
}  // namespace shardcall
