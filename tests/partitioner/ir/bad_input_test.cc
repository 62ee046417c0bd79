// SPDX-License-Identifier: Apache-2.0
// Damaged text: whatever it holds, reading ends with a module that prints and
// reads again, or with one diagnostic.
#include <random>

#include "sharding/status.h"
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
  if (again.ok()) EXPECT_TRUE(PrintModule(*again) == printed);
}

TEST(BadInput, TruncatedTextIsDiagnosed) {
  const std::string text = SampleText();
  for (size_t n = 0; n < text.size(); n += 7) {
    const auto module = Parse(text.substr(0, n));
    // A cut between two computations leaves a whole module.
    if (module.ok()) continue;
    EXPECT_FALSE(DiagnosticCode(module.status()).empty()) << n;
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

TEST(BadInput, DeepNestingIsRefusedWithoutUsingUpTheStack) {
  const int n = 200000;
  EXPECT_EQ(ErrorOf(InEntry("  %a = " + Repeat("(", n) + "f32[]" + Repeat(")", n) +
                            " parameter(0)")).substr(0, 4), "E014");
  EXPECT_EQ(ErrorOf(InEntry("  %a = f32[] parameter(0)\n  %b = f32[] negate(" +
                            Repeat("f32[] negate(", n) + "%a" + Repeat(")", n) + ")"))
                .substr(0, 4), "E014");
  EXPECT_EQ(ErrorOf(InEntry("  %a = f32[] parameter(0)\n" +
                            Repeat("  %b = f32[] call(), to_apply={\n", n)))
                .substr(0, 4), "E014");
  EXPECT_EQ(ErrorOf(InEntry("  %a = f32[] custom-call(), custom_call_target=\"a\", literal=" +
                            Repeat("(", n))).substr(0, 4), "E014");
  EXPECT_EQ(ErrorOf(InEntry("  %a = f32[] parameter(0), backend_config=" + Repeat("{", n)))
                .substr(0, 4), "E002");
  EXPECT_EQ(ErrorOf("HloModule m, frontend_attributes={a=" + Repeat("{", n) + "}")
                .substr(0, 4), "E002");
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
