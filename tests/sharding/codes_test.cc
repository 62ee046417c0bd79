// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/codes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

TEST(Codes, EveryRowIsFoundByItsCode) {
  ASSERT_FALSE(AllCodes().empty());
  for (const CodeInfo& info : AllCodes()) EXPECT_EQ(FindCode(info.code), &info) << info.code;
}

TEST(Codes, WhatIsNoCodeIsNotFound) {
  for (const char* code : {"", "E", "E1", "E000", "E1010", "e101", "E999", "W999"}) {
    EXPECT_EQ(FindCode(code), nullptr) << code;
  }
}

TEST(Codes, EveryExampleReadsAsADiagnostic) {
  for (const CodeInfo& info : AllCodes()) {
    const std::string text = FormatDiagnostic({.code = std::string(info.code),
                                               .message = std::string(info.example),
                                               .fix = std::string(info.fix)});
    EXPECT_EQ(DiagnosticCode(text), info.code) << text;
    EXPECT_EQ(info.example.find("Fix:"), absl::string_view::npos) << text;
    EXPECT_FALSE(info.about.empty()) << info.code;
  }
}

}  // namespace
}  // namespace shardcall
