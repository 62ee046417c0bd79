// SPDX-License-Identifier: Apache-2.0
// StableHLO as bytecode: tests/data/stablehlo/bytecode has programs as text (.mlir), what jaxlib
// writes for them (.mlirbc, by make.py), and the HLO that is read from that (.hlo).
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/ir/opcode.h"
#include "shardcall/partitioner/ir/stablehlo/bytecode/bytecode.h"
#include "shardcall/partitioner/ir/stablehlo/read/computation_reader.h"
#include "shardcall/partitioner/ir/stablehlo/reader.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

const std::string kFolder = SHARDCALL_STABLEHLO_DATA;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> Programs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".mlirbc") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<Module> Read(absl::string_view bytes) {
  return ReadStablehloBytecode(bytes, std::make_shared<Context>());
}

class StablehloReader : public testing::TestWithParam<std::string> {
 protected:
  std::string Bytes() const { return ReadFile(absl::StrCat(kFolder, "/", GetParam(), ".mlirbc")); }
};

TEST_P(StablehloReader, GivesTheKeptHloWhichIsValidAndReadsBack) {
  absl::StatusOr<Module> module = Read(Bytes());
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(VerifyModule(*module, GetParam()), absl::OkStatus());
  const std::string text = PrintModule(*module);
  const std::string kept = absl::StrCat(kFolder, "/", GetParam(), ".hlo");
  if (std::getenv("SHARDCALL_UPDATE_GOLDENS") != nullptr) std::ofstream(kept) << text;
  EXPECT_EQ(text, ReadFile(kept));
  const auto again = ParseModule(std::make_shared<const std::string>(text),
                                 std::make_shared<Context>(), GetParam());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(PrintModule(*again), text);
}

TEST_P(StablehloReader, RefusesBytesThatAreCutOff) {
  const std::string bytes = Bytes();
  for (size_t n = 0; n < bytes.size(); ++n) {
    const auto module = Read(absl::string_view(bytes).substr(0, n));
    ASSERT_FALSE(module.ok()) << n;
    EXPECT_EQ(DiagnosticCode(module.status()), "E035") << module.status();
  }
}

TEST_P(StablehloReader, SurvivesBytesThatAreChanged) {
  const std::string bytes = Bytes();
  for (size_t n = 4; n < bytes.size(); ++n) {
    for (const char change : {'\x01', '\x80', '\xff'}) {
      std::string changed = bytes;
      changed[n] ^= change;
      const auto module = Read(changed);
      if (module.ok()) {
        VerifyModule(*module, "changed").IgnoreError();
      } else {
        EXPECT_EQ(DiagnosticCode(module.status()), "E035") << module.status();
      }
    }
  }
}

// What each of them is stands in the folder's README.
TEST(StablehloReader, ReadsOrRefusesHostileFilesQuickly) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "/../hostile")) {
    if (entry.path().extension() != ".mlirbc") continue;
    ++files;
    const std::string name = entry.path().stem();
    const auto module = Read(ReadFile(entry.path()));
    // Locations and unused attributes say nothing that the program needs.
    const bool read = name == "locbomb" || name == "sdybomb" || name == "mul";
    EXPECT_EQ(module.ok(), read) << name << ": " << module.status();
    if (!module.ok()) {
      EXPECT_EQ(DiagnosticCode(module.status()), "E035") << name;
    } else {
      EXPECT_EQ(VerifyModule(*module, name).ok(), name != "mul") << name;
    }
  }
  EXPECT_EQ(files, 18);
}

TEST(StablehloReader, LeavesCallsThatStandForOtherOpsToXla) {
  std::string bytes = ReadFile(kFolder + "/values.mlirbc");
  ASSERT_TRUE(absl::StrContains(bytes, "kernel"));
  bytes = absl::StrReplaceAll(bytes, {{"kernel", "chlo.a"}});
  EXPECT_EQ(Read(bytes).status().code(), absl::StatusCode::kUnimplemented);
}

INSTANTIATE_TEST_SUITE_P(Programs, StablehloReader, testing::ValuesIn(Programs()),
                         [](const auto& info) { return info.param; });

TEST(StablehloReader, NamesAnOperationThatItDoesNotConvert) {
  // An operation's name stands in the table of strings, without its dialect.
  std::string bytes = ReadFile(kFolder + "/calls.mlirbc");
  ASSERT_TRUE(absl::StrContains(bytes, "exponential"));
  bytes = absl::StrReplaceAll(bytes, {{"exponential", "exponentiol"}});
  const auto module = Read(bytes);
  EXPECT_EQ(module.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(absl::StrContains(module.status().message(), "stablehlo.exponentiol"))
      << module.status();
}

TEST(StablehloReader, EveryOpWithAStablehloNameIsReadButThoseOfBatchNorm) {
  for (const OpcodeInfo& info : kOpcodeInfo) {
    if (info.stablehlo.empty()) continue;
    EXPECT_EQ(stablehlo::FindReader(info.stablehlo) == nullptr,
              absl::StartsWith(info.stablehlo, "stablehlo.batch_norm_"))
        << info.stablehlo;
  }
}

TEST(StablehloReader, NamesAnAttributeThatItDoesNotKnow) {
  std::string bytes = ReadFile(kFolder + "/combining.mlirbc");
  ASSERT_TRUE(absl::StrContains(bytes, "feature_group_count"));
  bytes = absl::StrReplaceAll(bytes, {{"feature_group_count", "feature_group_caunt"}});
  const auto module = Read(bytes);
  EXPECT_EQ(module.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(absl::StrContains(module.status().message(), "feature_group_caunt"))
      << module.status();
}

TEST(StablehloReader, NamesAnAttributeOfAMeshThatItDoesNotKnow) {
  std::string bytes = ReadFile(kFolder + "/mesh_groups.mlirbc");
  ASSERT_TRUE(absl::StrContains(bytes, "stablehlo.mesh"));
  bytes = absl::StrReplaceAll(bytes, {{"stablehlo.mesh", "stablehlo.mash"}});
  const auto module = Read(bytes);
  EXPECT_EQ(module.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(absl::StrContains(module.status().message(), "a mesh with stablehlo.mash"))
      << module.status();
}

TEST(StablehloReader, RefusesOtherBytesWhereHloHasText) {
  const std::string bytes = ReadFile(absl::StrCat(kFolder, "/bytes.mlirbc"));
  ASSERT_TRUE(Read(bytes).ok());
  for (const char* text : {"custom_call", "typed", "main", "opaque"}) {
    const size_t at = bytes.find(std::string(1, '\0') + text + '\0');
    ASSERT_NE(at, std::string::npos) << text;
    std::string changed = bytes;
    changed[at + 2] = '\xff';
    EXPECT_EQ(DiagnosticCode(Read(changed).status()), "E035") << text;
  }
}

TEST(StablehloReader, RefusesANewerVersionOfBytecode) {
  std::string bytes = ReadFile(kFolder + "/calls.mlirbc");
  bytes[4] = 2 * 6 + 1;  // 6 as a variable-width integer
  const auto module = Read(bytes);
  EXPECT_EQ(module.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(absl::StrContains(module.status().message(), "version 6")) << module.status();
}

}  // namespace
}  // namespace shardcall
