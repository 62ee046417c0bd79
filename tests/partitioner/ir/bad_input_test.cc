// SPDX-License-Identifier: Apache-2.0
// Damaged text: whatever it holds, reading ends with a module that prints and
// reads again, or with one diagnostic.
#include <random>

#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/sharding/base/status.h"
#include "text_util.h"

namespace shardcall {
namespace {

std::string SampleText() {
  return ReadFile(std::filesystem::path(SHARDCALL_SOURCE_DIR) /
                  "tests/data/hlo_text/every_opcode.hlo");
}

void ExpectReadOrDiagnosed(const std::string& text) {
  const auto module = Parse(text);
  if (!module.ok()) {
    EXPECT_FALSE(DiagnosticCode(module.status()).empty()) << module.status().message();
    return;
  }
  const std::string printed = PrintModule(*module);
  const auto again = Parse(printed);
  EXPECT_TRUE(again.ok()) << again.status().message();
  if (again.ok()) {
    EXPECT_TRUE(PrintModule(*again) == printed);
  }
}

TEST(BadInput, TruncatedTextIsDiagnosed) {
  const std::string text = SampleText();
  for (size_t n = 0; n < text.size(); n += 5) {
    const auto module = Parse(text.substr(0, n));
    // A cut between two computations leaves a whole module.
    if (module.ok()) continue;
    EXPECT_FALSE(DiagnosticCode(module.status()).empty()) << n;
  }
}

TEST(BadInput, EveryPrefixOfManyTextsIsReadOrDiagnosed) {
  for (const auto& [title, text] : TextCases("accepted.txt")) {
    for (size_t n = 0; n < text.size(); ++n) {
      const auto module = Parse(text.substr(0, n));
      if (module.ok()) continue;
      EXPECT_FALSE(DiagnosticCode(module.status()).empty()) << title << " " << n;
    }
  }
}

TEST(BadInput, ChangedBytesAreReadOrDiagnosed) {
  const std::string text = SampleText();
  static constexpr char kBytes[] = "{}()[]=,%\"'\\/*-0159.eExn:#T<>?\n\0\xff zqb";
  const std::string bytes(kBytes, sizeof(kBytes) - 1);
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string changed = text;
    for (int k = 0; k < 1 + round % 3; ++k) {
      changed[random() % changed.size()] = bytes[random() % bytes.size()];
    }
    ExpectReadOrDiagnosed(changed);
  }
}

TEST(BadInput, RemovedAndRepeatedPiecesAreReadOrDiagnosed) {
  const std::string text = SampleText();
  std::mt19937 random(2);
  for (int round = 0; round < 1500; ++round) {
    std::string changed = text;
    const size_t at = random() % changed.size();
    const size_t length = 1 + random() % 40;
    if (round % 2 == 0) {
      changed.erase(at, length);
    } else {
      changed.insert(random() % changed.size(), text.substr(at, length));
    }
    ExpectReadOrDiagnosed(changed);
  }
}

std::string Repeat(const std::string& s, int n) {
  std::string out;
  for (int k = 0; k < n; ++k) out += s;
  return out;
}

std::string CodeOf(const std::string& text) { return ErrorOf(text).substr(0, 4); }

// Nested `n` deep in every way in which text nests.
std::vector<std::pair<std::string, std::string>> Nested(int n) {
  const auto deep = [n](const std::string& open, const std::string& middle,
                        const std::string& close) {
    return Repeat(open, n) + middle + Repeat(close, n);
  };
  const std::string shape = deep("(", "f32[]", ")");
  return {
      {"tuple shape", InEntry("  %a = " + shape + " parameter(0)")},
      {"buffer shape", InEntry("  %a = " + deep("b(", "f32[]", ")") + " parameter(0)")},
      {"operand", InEntry("  %a = f32[] parameter(0)\n  %b = f32[] negate(" +
                          deep("f32[] negate(", "%a", ")") + ")")},
      {"computation",
       InEntry("  %a = f32[] parameter(0)\n" +
               deep("  %b = f32[] call(), to_apply={\n", "  %a = f32[] constant(1)\n", "}\n"))},
      {"listed computation",
       InEntry(
           "  %a = s32[] parameter(0)\n" +
           deep("  %b = f32[] custom-call(), custom_call_target=\"t\", called_computations={{\n",
                "  %a = f32[] constant(1)\n", "}}\n"))},
      {"literal", InEntry("  %a = " + shape + " constant(" + deep("(", "1", ")") + ")")},
      {"literal of a call",
       InEntry("  %a = f32[] custom-call(), custom_call_target=\"a\", literal=" +
               deep("(", "f32[] 1", ")"))},
      {"origin", InEntry("  %a = f32[] parameter(0), origin={" + deep("(", "{\"x\"}", ")") + "}")},
  };
}

TEST(BadInput, DeepNestingIsRefused) {
  for (const int n : {10000, 200000}) {
    for (const auto& [what, text] : Nested(n)) EXPECT_EQ(CodeOf(text), "E014") << what << " " << n;
  }
}

// What XLA still reads; nothing recurses, so the stack is no matter.
TEST(BadInput, NestingUpToTheLimitIsReadVerifiedAndPrinted) {
  for (const auto& [what, text] : Nested(8000)) {
    const auto module = Parse(text);
    ASSERT_TRUE(module.ok()) << what << module.status().message().substr(0, 300);
    (void)VerifyModule(*module, "");  // may refuse, must return
    const std::string printed = PrintModule(*module);
    const auto again = Parse(printed);
    ASSERT_TRUE(again.ok()) << what << again.status().message().substr(0, 300);
    EXPECT_TRUE(PrintModule(*again) == printed) << what;
  }
}

TEST(BadInput, DeepBracesInDictionariesAndShardings) {
  const std::string deep = Repeat("{", 100000) + Repeat("}", 100000);
  const auto parameter = [](const std::string& attribute) {
    return InEntry("  %a = f32[] parameter(0), " + attribute);
  };
  EXPECT_EQ(ErrorOf(parameter("backend_config=" + deep)), "ok");
  EXPECT_EQ(ErrorOf(parameter("frontend_attributes={a=" + deep + "}")), "ok");
  EXPECT_EQ(CodeOf(parameter("sharding=" + deep)), "E016");
  EXPECT_EQ(CodeOf(parameter("metadata=" + deep)), "E001");
  EXPECT_EQ(CodeOf(parameter("statistics=" + deep)), "E001");
  EXPECT_EQ(CodeOf(parameter("origin=" + deep)), "E001");
  EXPECT_EQ(CodeOf(parameter("backend_config=" + Repeat("{", 200000))), "E002");
  EXPECT_EQ(CodeOf("HloModule m, frontend_attributes={a=" + Repeat("{", 200000) + "}"), "E002");
  EXPECT_EQ(CodeOf("HloModule m, debug_attributes=" + Repeat("({[", 200000)), "E002");
}

// Declared sizes allocate nothing: what is there counts.
TEST(BadInput, HugeConstantsOfFewValuesAreRefused) {
  for (const char* type : {"f32", "c128", "pred", "s4"}) {
    for (const char* dims : {"1000000000", "1000000000000", "30000,30000", "9223372036854775807",
                             "4294967296,4294967296,4294967296"}) {
      const std::string shape = std::string(type) + "[" + dims + "]";
      EXPECT_EQ(CodeOf(InEntry("  %a = " + shape + " constant({1})")), "E011") << shape;
      EXPECT_EQ(ErrorOf(InEntry("  %a = " + shape + " constant({...})")), "ok") << shape;
    }
  }
  EXPECT_EQ(CodeOf(InEntry("  %a = f32[1000000000,0] constant({})")), "E011");
  EXPECT_EQ(ErrorOf(InEntry("  %a = f32[0,1000000000] constant({})")), "ok");
}

TEST(BadInput, OverflowingIntegersAreDiagnosedWhereverTheyStand) {
  const std::string big = "99999999999999999999999999999999";
  for (const std::string& line : std::vector<std::string>{
           "%a = f32[" + big + "] parameter(0)",
           "%a = f32[2]{" + big + "} parameter(0)",
           "%a = f32[2]{0:S(" + big + ")} parameter(0)",
           "%a = f32[] parameter(" + big + ")",
           "%a = u64[] constant(" + big + ")",
           "%a = s32[2] iota(), iota_dimension=" + big,
           "%a = f32[] custom-call(), custom_call_target=\"t\", window={size=" + big + "}",
           "%a = f32[] custom-call(), custom_call_target=\"t\", "
           "output_to_operand_aliasing={{}: (" +
               big + ", {})}",
           "%a = f32[] parameter(0), metadata={op_name=\"x\" source_line=" + big + "}",
           "%a = f32[] all-to-all(), replica_groups={{" + big + "}}",
           "%a = f32[] all-to-all(), replica_groups=[" + big + ",1]<=[1]",
           "%a = f32[] collective-permute(), source_target_pairs={{0," + big + "}}",
       }) {
    EXPECT_EQ(CodeOf(InEntry("  " + line)), "E003") << line;
  }
  EXPECT_EQ(CodeOf("HloModule m, num_partitions=" + big), "E003");
  EXPECT_EQ(CodeOf("HloModule m, input_output_alias={ {}: (" + big + ", {}) }"), "E003");
  EXPECT_EQ(CodeOf(InEntry("  %a = f32[2] parameter(0), sharding={devices=[" + big + "]<=[2]}")),
            "E016");
}

TEST(BadInput, WrongUtf8IsRefusedAnywhere) {
  for (const char* bytes : {"\xff", "\xc3", "\xc3(", "\xe2\x82", "\xc0\xaf", "\xed\xa0\x80",
                            "\xf5\x80\x80\x80", "\xf4\x90\x80\x80", "\x80"}) {
    const std::string b = bytes;
    for (const std::string& text : std::vector<std::string>{
             InEntry("  %a = f32[] parameter(0), metadata={op_name=\"x" + b + "\"}"),
             InEntry("  %a = f32[] parameter(0), backend_config={a=\"" + b + "\"}"),
             InEntry("  %a = f32[] parameter(0) // " + b),
             InEntry("  %a" + b + " = f32[] parameter(0)"), b,
             InEntry("  %a = f32[] parameter(0)") + b}) {
      const std::string error = ErrorOf(text);
      EXPECT_EQ(error.rfind("E001 The text is not UTF-8 at t.hlo:", 0), 0u) << error;
      EXPECT_EQ(error.back(), '^');
    }
  }
  // Good UTF-8 in strings and comments is kept; bytes may be written as escapes.
  const std::string line = PrintedLine(
      "  %a = f32[] parameter(0), metadata={op_name=\"\xc3\xa9 \xe2\x82\xac "
      "\xf0\x9f\x98\x80\\377\"} // \xf4\x8f\xbf\xbf",
      "a");
  EXPECT_NE(line.find("\"\\303\\251 \\342\\202\\254 \\360\\237\\230\\200\\377\""),
            std::string::npos)
      << line;
}

TEST(BadInput, CyclesAreUsesBeforeTheDefinition) {
  EXPECT_EQ(CodeOf(InEntry("  %a = f32[] negate(%a)")), "E008");
  EXPECT_EQ(CodeOf(InEntry("  %a = f32[] negate(%b)\n  %b = f32[] negate(%a)")), "E008");
  EXPECT_EQ(CodeOf("HloModule m\nENTRY e { a = f32[] call(), to_apply=e }"), "E008");
  EXPECT_EQ(CodeOf("HloModule m\nf { a = f32[] call(), to_apply=g }\n"
                   "g { a = f32[] call(), to_apply=f }\nENTRY e { a = f32[] call(), to_apply=f }"),
            "E008");
  EXPECT_EQ(CodeOf(InEntry("  %a = f32[] parameter(0), control-predecessors={%a}")), "E008");
}

TEST(BadInput, EmptyLinesReserveNothing) {
  const auto module = Parse(std::string(16 << 20, '\n') + InEntry("  %a = f32[] parameter(0)"));
  ASSERT_TRUE(module.ok());
  EXPECT_EQ(module->num_instructions(), 1);
}

TEST(BadInput, HugeRanksAreReadOrDiagnosed) {
  std::string dims = "1", layout = "0";
  for (int k = 1; k < 2000; ++k) {
    dims += ",1";
    layout += "," + std::to_string(k);
  }
  EXPECT_EQ(ErrorOf(InEntry("  %a = f32[" + dims + "]{" + layout + "} parameter(0)")), "ok");
}

}  // namespace
}  // namespace shardcall
