// SPDX-License-Identifier: Apache-2.0
// Helpers of the tests of HLO text.
#ifndef SHARDCALL_TESTS_PARTITIONER_IR_TEXT_UTIL_H_
#define SHARDCALL_TESTS_PARTITIONER_IR_TEXT_UTIL_H_

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gtest/gtest.h"
#include "shardcall/partitioner/ir/build/rewritten.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"

namespace shardcall {

inline absl::StatusOr<Module> Parse(std::string text, absl::string_view file = "t.hlo") {
  return ParseModule(std::make_shared<const std::string>(std::move(text)),
                     std::make_shared<Context>(), file);
}

// The error's text; "ok" if there is none.
inline std::string ErrorOf(std::string text) {
  const auto module = Parse(std::move(text));
  return module.ok() ? "ok" : std::string(module.status().message());
}

// A module whose entry has these lines.
inline std::string InEntry(absl::string_view lines) {
  return "HloModule m\n\nENTRY %e {\n" + std::string(lines) + "\n}\n";
}

// The text of a module after `rewrite`, which is verified; empty if that changes nothing.
inline std::string TextAfter(
    const std::string& text,
    absl::FunctionRef<std::optional<Rewritten>(const Module& module)> rewrite) {
  const absl::StatusOr<Module> module = Parse(text);
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return "";
  const std::optional<Rewritten> out = rewrite(*module);
  if (!out.has_value()) return "";
  EXPECT_EQ(static_cast<int>(out->made_for.size()), out->module.num_instructions());
  const absl::Status status = VerifyModule(out->module, "");
  EXPECT_TRUE(status.ok()) << status;
  return PrintModule(out->module);
}

// The printed entry's line that defines `name`, without indentation and ROOT.
inline std::string PrintedLine(absl::string_view lines, absl::string_view name) {
  const auto module = Parse(InEntry(lines));
  if (!module.ok()) return std::string(module.status().message());
  std::istringstream text(PrintModule(*module));
  const std::string start = "%" + std::string(name) + " = ";
  for (std::string line; std::getline(text, line);) {
    const size_t at = line.find(start);
    if (at != std::string::npos &&
        line.substr(0, at).find_first_not_of(" ROT") == std::string::npos) {
      return line.substr(at);
    }
  }
  return "no such line";
}

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream buffer;
  buffer << in.rdbuf();
  return buffer.str();
}

// The texts of tests/data/hlo_text/FILE, each after a line `### TITLE`; `body`
// in a line of its own stands for the head of an entry computation.
inline std::vector<std::pair<std::string, std::string>> TextCases(const std::string& file) {
  std::istringstream in(
      ReadFile(std::filesystem::path(SHARDCALL_SOURCE_DIR) / "tests/data/hlo_text" / file));
  std::vector<std::pair<std::string, std::string>> out;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("### ", 0) == 0) {
      out.push_back({line.substr(4), ""});
    } else if (!out.empty()) {
      out.back().second += line + "\n";
    }
  }
  for (auto& [title, text] : out) {
    if (text.rfind("body\n", 0) == 0) text = InEntry(text.substr(5));
  }
  return out;
}

inline std::vector<std::filesystem::path> HloFiles(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".hlo") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_PARTITIONER_IR_TEXT_UTIL_H_
