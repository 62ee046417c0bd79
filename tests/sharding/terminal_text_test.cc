// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/terminal_text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "shardcall/sharding/base/status.h"

namespace shardcall::testing {
namespace {

TEST(TerminalText, TextWithoutControlsStays) {
  for (const char* text :
       {"", "%add.1 = f32[4]{0}", "two\nlines\tand a tab", "é € 日本 🙂", "\\x1b"}) {
    EXPECT_EQ(WithoutControls(text), text);
  }
  EXPECT_EQ(WithoutControls("\xff\xc2"), "\xff\xc2");  // no UTF-8
}

TEST(TerminalText, WhatSteersATerminalIsEscaped) {
  EXPECT_EQ(WithoutControls("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(WithoutControls("safe\rEVIL\x08\x7f"), "safe\\x0dEVIL\\x08\\x7f");
  EXPECT_EQ(WithoutControls(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(WithoutControls("\xc2\x9b"
                            "2J"),
            "\\xc2\\x9b2J");                                          // C1: CSI
  EXPECT_EQ(WithoutControls("a\xe2\x80\xaez"), "a\\xe2\\x80\\xaez");  // right to left
  EXPECT_EQ(WithoutControls("\xe2\x81\xa6"), "\\xe2\\x81\\xa6");
  EXPECT_EQ(WithoutControls("\xe2\x80\xa6"), "\xe2\x80\xa6");  // an ellipsis
}

TEST(TerminalText, DiagnosticsAreWithoutControls) {
  const absl::Status status = ToStatus({.code = "E101",
                                        .message = "target \"\x1b]0;x\x07\" has no rule",
                                        .where = "a\rb",
                                        .found = "\x1b",
                                        .fix = "Do\x1b",
                                        .excerpt = "line\n\x1b^"});
  EXPECT_EQ(status.message(),
            "E101 target \"\\x1b]0;x\\x07\" has no rule at a\\x0db: found \\x1b. Fix: Do\\x1b\n"
            "line\n\\x1b^");
}

// A shell gives the word back.
TEST(TerminalText, ShellWordsAreQuotedWhereAShellNeedsIt) {
  EXPECT_EQ(ShellWord("my_target.1"), "my_target.1");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  for (const std::string word : {"$(touch x)", "it's", "`x`", "a;b", "~", "*", "a\"b\\", "x&y|z"}) {
    FILE* shell = popen(("printf %s " + ShellWord(word)).c_str(), "r");
    ASSERT_NE(shell, nullptr);
    std::string said;
    for (int c; (c = std::fgetc(shell)) != EOF;) said.push_back(static_cast<char>(c));
    EXPECT_EQ(pclose(shell), 0);
    EXPECT_EQ(said, word);
  }
}

}  // namespace
}  // namespace shardcall::testing
