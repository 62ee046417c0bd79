// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "text_util.h"

namespace shardcall {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Printer, InstructionsWithoutNamesAreNamedAfterTheirOpcode) {
  auto context = std::make_shared<Context>();
  Module m(context);
  m.header.name = "m";
  const CompId entry = m.AddComputation("main");
  m.set_entry(entry);
  const Shape* shape = context->MakeArray(ElementType::kF32, {2});
  ParameterAttrs p;
  const InstrId x = m.Add(entry, Opcode::kParameter, shape, {}, InternAttributes(*context, p));
  const InstrId a = m.Add(entry, Opcode::kNegate, shape, {x});
  const InstrId b = m.Add(entry, Opcode::kNegate, shape, {a});
  m.mutable_instr(b).name = "negate.1";
  const InstrId c = m.Add(entry, Opcode::kNegate, shape, {b});
  m.SetRoot(entry, c);
  EXPECT_EQ(PrintModule(m),
            "HloModule m, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n\n"
            "ENTRY %main (parameter: f32[2]) -> f32[2] {\n"
            "  %parameter = f32[2]{0} parameter(0)\n"
            "  %negate = f32[2]{0} negate(%parameter)\n"
            "  %negate.1 = f32[2]{0} negate(%negate)\n"
            "  ROOT %negate.2 = f32[2]{0} negate(%negate.1)\n"
            "}\n\n");
  EXPECT_EQ(PrintInstruction(m, b), "%negate.1 = f32[2]{0} negate(%negate.#1)");
}

TEST(Printer, ComputationsStandBeforeTheirCallersWhateverTheirIds) {
  auto context = std::make_shared<Context>();
  Module m(context);
  m.header.name = "m";
  const CompId entry = m.AddComputation("main");
  const CompId callee = m.AddComputation("f");
  m.set_entry(entry);
  const Shape* shape = context->MakeScalar(ElementType::kF32);
  const auto* p = InternAttributes(*context, ParameterAttrs());
  m.SetRoot(callee, m.Add(callee, Opcode::kParameter, shape, {}, p));
  const InstrId x = m.Add(entry, Opcode::kParameter, shape, {}, p);
  CallAttrs call;
  call.to_apply = callee;
  m.SetRoot(entry, m.Add(entry, Opcode::kCall, shape, {x}, InternAttributes(*context, call)));
  const std::string text = PrintModule(m);
  EXPECT_LT(text.find("%f ("), text.find("ENTRY %main ("));
  EXPECT_TRUE(Parse(text).ok());
}

// The long text of the module that the short text says, without metadata.
TEST(Printer, TheShortFormMeansTheSameProgram) {
  const auto data = std::filesystem::path(SHARDCALL_SOURCE_DIR) / "tests/data";
  std::vector<std::string> texts = {ReadFile(data / "hlo_text/every_opcode.hlo"),
                                    ReadFile(data / "hlo/mlp_train_d4m2.sdy.hlo")};
  for (auto& [title, text] : TextCases("accepted.txt")) texts.push_back(std::move(text));
  for (const std::string& text : texts) {
    const auto m = Parse(text);
    ASSERT_TRUE(m.ok()) << m.status().message();
    const std::string printed = PrintModule(*m, {.short_form = true});
    const auto again = Parse(printed);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(PrintModule(*again), PrintModule(*m, {.metadata = false}));
    EXPECT_EQ(PrintModule(*again, {.short_form = true}), printed);
  }
}

TEST(Printer, TheShortFormKeepsPercentSignsWhereANameIsAReservedWord) {
  const auto m =
      Parse(InEntry("  %nan = f32[] parameter(0), metadata={op_name=\"x\"}\n"
                    "  %b = f32[] abs(%nan)\n"
                    "  ROOT %c = f32[] negate(%b), control-predecessors={%nan}"));
  ASSERT_TRUE(m.ok()) << m.status().message();
  EXPECT_EQ(PrintModule(*m, {.short_form = true}),
            "HloModule m, entry_computation_layout={(f32[])->f32[]}\n\n"
            "ENTRY e {\n"
            "  %nan = f32[] parameter(0)\n"
            "  b = f32[] abs(%nan)\n"
            "  ROOT c = f32[] negate(b), control-predecessors={%nan}\n"
            "}\n\n");
}

TEST(Printer, ParametersNamedAsReservedWordsAreReadAgain) {
  const auto m = Parse(
      "HloModule m\n\nENTRY %e (ENTRY: f32[], nan: f32[]) -> f32[] {\n"
      "  %ENTRY = f32[] parameter(0)\n  %nan = f32[] parameter(1)\n"
      "  ROOT %c = f32[] add(%ENTRY, %nan)\n}\n\n");
  ASSERT_TRUE(m.ok()) << m.status().message();
  const auto again = Parse(PrintModule(*m));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(PrintModule(*again), PrintModule(*m));
}

TEST(Printer, MetadataCanBeLeftOut) {
  const auto m = Parse(
      "HloModule m\n\nFileNames\n1 \"a.py\"\n\nFunctionNames\n1 \"f\"\n\n"
      "FileLocations\n1 {file_name_id=1 function_name_id=1 line=1 end_line=1 "
      "column=2 end_column=3}\n\nStackFrames\n1 {file_location_id=1 "
      "parent_frame_id=1}\n\n\nENTRY %e (p: f32[]) -> f32[] {\n  ROOT %p = f32[] "
      "parameter(0), metadata={op_name=\"x\" stack_frame_id=1}\n}\n\n");
  ASSERT_TRUE(m.ok()) << m.status().message();
  EXPECT_EQ(m->header.stack.frames[0].parent, 0);
  EXPECT_THAT(PrintModule(*m), HasSubstr("stack_frame_id=1"));
  const std::string bare = PrintModule(*m, {.metadata = false});
  EXPECT_THAT(bare, Not(HasSubstr("metadata")));
  EXPECT_THAT(bare, Not(HasSubstr("FileNames")));
}

TEST(Printer, EveryFifthElementIsNumbered) {
  const auto m =
      Parse(InEntry("  %p = f32[] parameter(0)\n"
                    "  ROOT %t = (f32[], f32[], f32[], f32[], f32[], f32[]) "
                    "tuple(%p, %p, %p, %p, %p, %p)"));
  ASSERT_TRUE(m.ok());
  EXPECT_THAT(PrintInstruction(*m, InstrId(1)),
              testing::Eq("%t = (f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[]) "
                          "tuple(%p, %p, %p, %p, %p, /*index=5*/%p)"));
}

}  // namespace
}  // namespace shardcall
