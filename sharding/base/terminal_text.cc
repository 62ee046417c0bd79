// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/terminal_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace shardcall {
inline namespace internal {
namespace {

// The bytes at the start of `text` that steer a terminal; 0 if none do.
size_t ControlBytes(absl::string_view text) {
  const auto byte = [&](size_t k) {
    return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u;
  };
  const unsigned first = byte(0);
  if (first == '\n' || first == '\t') return 0;
  if (first < 0x20 || first == 0x7f) return 1;
  if (first == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) return 2;  // C1
  if (first != 0xe2) return 0;
  // Embeddings and overrides, U+202A to U+202E, and isolates, U+2066 to U+2069.
  const bool turns = (byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae) ||
                     (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9);
  return turns ? 3 : 0;
}

}  // namespace

std::string WithoutControls(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = ControlBytes(text);
    for (size_t k = 0; k < bytes; ++k) {
      absl::StrAppend(&out, "\\x", absl::Hex(static_cast<unsigned char>(text[k]), absl::kZeroPad2));
    }
    if (bytes == 0) out.push_back(text[0]);
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return out;
}

std::string ShellWord(absl::string_view word) {
  const auto plain = [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("_./:=,+@%-", c);
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string(word);
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace internal
}  // namespace shardcall
