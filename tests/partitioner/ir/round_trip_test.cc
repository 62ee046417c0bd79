// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "tests/support/corpus.h"
#include "text_util.h"

namespace shardcall {
namespace {

// What XLA prints for the same module: it writes negative zero as `-0`, which it
// reads back as +0.
std::string AsXlaPrints(std::string text) {
  for (size_t at = 0; (at = text.find("-0.0", at)) != std::string::npos; ++at) {
    const bool whole =
        text.find_first_of(" ({", at - 1) == at - 1 && text.find_first_of(" ,)}", at + 4) == at + 4;
    if (whole) text.erase(at + 2, 2);
  }
  return text;
}

// The files are as XLA printed them, so our text must be theirs.
void ExpectRoundTrip(const std::filesystem::path& path) {
  const std::string text = ReadFile(path);
  const auto module = Parse(text, path.filename().string());
  ASSERT_TRUE(module.ok()) << module.status().message();
  const std::string print = PrintModule(*module);
  const std::string printed = AsXlaPrints(print);
  // Not EXPECT_EQ: the diff of megabytes would be.
  const auto difference = std::mismatch(text.begin(), text.end(), printed.begin(), printed.end());
  const size_t at = difference.first - text.begin();
  EXPECT_TRUE(printed == text) << path << " from byte " << at << ": " << text.substr(at, 80)
                               << "\n  printed: "
                               << printed.substr(std::min(at, printed.size()), 80);
  const auto again = Parse(print);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(PrintModule(*again) == print) << path;
}

TEST(RoundTrip, EveryOpcodeAndAttributePrintsAsXlaPrintsIt) {
  ExpectRoundTrip(std::filesystem::path(SHARDCALL_SOURCE_DIR) /
                  "tests/data/hlo_text/every_opcode.hlo");
}

TEST(RoundTrip, EveryOpcodeStandsInTheTestFile) {
  const auto module = Parse(ReadFile(std::filesystem::path(SHARDCALL_SOURCE_DIR) /
                                     "tests/data/hlo_text/every_opcode.hlo"));
  ASSERT_TRUE(module.ok()) << module.status().message();
  std::vector<bool> seen(kNumOpcodes, false);
  for (int k = 0; k < module->num_instructions(); ++k) {
    seen[static_cast<int>(module->instr(InstrId(k)).opcode)] = true;
  }
  for (int op = 0; op < kNumOpcodes; ++op) {
    EXPECT_TRUE(seen[op]) << OpcodeText(static_cast<Opcode>(op));
  }
}

TEST(RoundTrip, JaxProgramsOfTheTree) {
  const std::filesystem::path data = std::filesystem::path(SHARDCALL_SOURCE_DIR) / "tests/data";
  const auto files = HloFiles(data / "hlo");
  EXPECT_GT(files.size(), 50u);
  for (const auto& file : files) ExpectRoundTrip(file);
}

// Their text has forms that older versions of XLA do not read, so that it is not printed as it was.
TEST(RoundTrip, ProgramsOfJax012PrintTheSameAgain) {
  const std::filesystem::path data = std::filesystem::path(SHARDCALL_SOURCE_DIR) / "tests/data";
  const auto files = HloFiles(data / "hlo_jax_0_12");
  EXPECT_GT(files.size(), 20u);
  for (const auto& file : files) {
    const auto module = Parse(ReadFile(file));
    ASSERT_TRUE(module.ok()) << file << module.status();
    const std::string printed = PrintModule(*module);
    const auto again = Parse(printed);
    ASSERT_TRUE(again.ok()) << file << again.status();
    EXPECT_EQ(PrintModule(*again), printed) << file;
    EXPECT_EQ(again->num_instructions(), module->num_instructions()) << file;
  }
}

TEST(RoundTrip, JaxProgramsOfTheCorpus) {
  for (const auto& file : CorpusFiles()) ExpectRoundTrip(file);
}

}  // namespace
}  // namespace shardcall
