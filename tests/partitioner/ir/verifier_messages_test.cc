// SPDX-License-Identifier: Apache-2.0
// What the verifier says, word for word, of programs that break one rule each:
// tests/data/verifier/messages.txt has the programs and the messages. With
// SHARDCALL_UPDATE_GOLDENS=1 it is written anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "tests/partitioner/ir/text_util.h"

namespace shardcall {
namespace {

constexpr absl::string_view kProgram = "\n//==\n", kMessage = "\n//=>\n";

std::string MessageOf(std::string text) {
  const auto module = Parse(std::move(text), "m");
  const absl::Status status = module.ok() ? VerifyModule(*module, "m") : module.status();
  return status.ok() ? "ok" : std::string(status.message());
}

TEST(VerifierMessagesTest, AreTheGoldenOnes) {
  const std::filesystem::path path =
      std::filesystem::path(SHARDCALL_SOURCE_DIR) / "tests/data/verifier/messages.txt";
  const std::string golden = ReadFile(path);
  const absl::string_view all = golden;
  size_t at = all.find(kProgram);
  ASSERT_NE(at, all.npos);
  std::string now(all.substr(0, at));
  std::set<std::string> codes;
  int programs = 0;
  while (at != all.npos) {
    const size_t begin = at + kProgram.size(), middle = all.find(kMessage, begin);
    ASSERT_NE(middle, all.npos) << all.substr(begin, 200);
    const size_t message = middle + kMessage.size(), end = all.find(kProgram, message);
    const absl::string_view text = all.substr(begin, middle - begin);
    const std::string found = MessageOf(std::string(text));
    if (std::getenv("SHARDCALL_UPDATE_GOLDENS") == nullptr) {
      EXPECT_EQ(absl::StrCat(found, "\n"),
                end == all.npos ? all.substr(message) : all.substr(message, end - message))
          << text;
    }
    absl::StrAppend(&now, kProgram, text, kMessage, found, "\n");
    // Each says what is expected or found, and what to do.
    EXPECT_TRUE(absl::StrContains(found, ". Fix: ")) << found;
    EXPECT_TRUE(absl::StrContains(found, ": expected ")) << found;
    codes.insert(found.substr(0, 4));
    ++programs;
    at = end;
  }
  EXPECT_EQ(codes, (std::set<std::string>{"E021", "E022", "E023", "E024", "E025", "E026", "E028"}));
  EXPECT_GE(programs, 150);
  if (std::getenv("SHARDCALL_UPDATE_GOLDENS") != nullptr) std::ofstream(path) << now;
}

}  // namespace
}  // namespace shardcall
