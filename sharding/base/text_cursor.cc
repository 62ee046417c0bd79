// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/text_cursor.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace shardcall {
inline namespace internal {
namespace {

bool IsWordChar(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.'; }

}  // namespace

void TextCursor::SkipSpace() {
  while (pos_ < text_.size()) {
    const absl::string_view rest = text_.substr(pos_);
    if (absl::ascii_isspace(rest[0])) {
      ++pos_;
    } else if (absl::StartsWith(rest, "/*")) {
      const size_t end = rest.find("*/", 2);
      if (end == absl::string_view::npos) return;
      pos_ += end + 2;
    } else if (absl::StartsWith(rest, "//")) {
      pos_ += std::min(rest.size(), rest.find('\n'));
    } else {
      return;
    }
  }
}

bool TextCursor::AtEnd() {
  SkipSpace();
  return pos_ == text_.size();
}

bool TextCursor::Peek(absl::string_view token) {
  SkipSpace();
  return absl::StartsWith(text_.substr(pos_), token);
}

bool TextCursor::Consume(absl::string_view token) {
  if (!Peek(token)) return false;
  pos_ += token.size();
  return true;
}

bool TextCursor::ConsumeWord(absl::string_view word) {
  if (!Peek(word)) return false;
  const size_t end = pos_ + word.size();
  if (end < text_.size() && IsWordChar(text_[end])) return false;
  pos_ = end;
  return true;
}

absl::Status TextCursor::Expect(absl::string_view token) {
  if (Consume(token)) return absl::OkStatus();
  return Error(absl::StrCat("'", token, "'"));
}

absl::Status TextCursor::ExpectEnd() {
  return AtEnd() ? absl::OkStatus() : Error(absl::StrCat("the end of the ", what_));
}

absl::string_view TextCursor::Identifier() {
  SkipSpace();
  const size_t begin = pos_;
  while (pos_ < text_.size() && IsWordChar(text_[pos_])) ++pos_;
  return text_.substr(begin, pos_ - begin);
}

absl::StatusOr<int64_t> TextCursor::Integer() {
  SkipSpace();
  size_t end = pos_;
  while (end < text_.size() && absl::ascii_isdigit(text_[end])) ++end;
  int64_t value;
  if (end == pos_ || !absl::SimpleAtoi(text_.substr(pos_, end - pos_), &value)) {
    return Error("an integer from 0 to 2^63-1");
  }
  pos_ = end;
  return value;
}

absl::StatusOr<std::string> TextCursor::Quoted() {
  SkipSpace();
  if (pos_ == text_.size() || (text_[pos_] != '\'' && text_[pos_] != '"')) {
    return Error("a quoted name");
  }
  const char quote = text_[pos_];
  std::string out;
  for (size_t i = pos_ + 1; i < text_.size(); ++i) {
    if (text_[i] == quote) {
      pos_ = i + 1;
      return out;
    }
    if (text_[i] == '\\' && i + 1 < text_.size()) ++i;
    out.push_back(text_[i]);
  }
  return ErrorAt(pos_, absl::StrCat("a name in the ", what_, " is not closed"),
                 std::string(1, quote), "the end");
}

absl::StatusOr<absl::string_view> TextCursor::Braces() {
  SkipSpace();
  const size_t begin = pos_;
  if (!Consume("{")) return Error("'{'");
  int64_t depth = 1;
  for (; pos_ < text_.size(); ++pos_) {
    const char c = text_[pos_];
    if (c == '"' || c == '\'') {
      for (++pos_; pos_ < text_.size() && text_[pos_] != c; ++pos_) {
        if (text_[pos_] == '\\') ++pos_;
      }
      if (pos_ >= text_.size()) break;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      ++pos_;
      return text_.substr(begin, pos_ - begin);
    }
  }
  pos_ = text_.size();
  return ErrorAt(begin, absl::StrCat("a brace in the ", what_, " is not closed"), "'}'", "the end");
}

absl::Status TextCursor::Error(absl::string_view expected) {
  SkipSpace();
  std::string found = "the end";
  if (pos_ < text_.size()) {
    size_t end = pos_;
    while (end < text_.size() && IsWordChar(text_[end])) ++end;
    end = std::min(std::max(end, pos_ + 1), pos_ + 40);
    found = absl::StrCat("'", text_.substr(pos_, end - pos_), "'");
  }
  return ErrorAt(pos_, absl::StrCat("malformed ", what_), expected, found);
}

absl::Status TextCursor::ErrorAt(size_t position, absl::string_view message,
                                 absl::string_view expected, absl::string_view found,
                                 absl::string_view fix) const {
  // Shows at most one line, cut to a window around the place, since texts may be long.
  constexpr size_t kBefore = 60, kAfter = 40;
  size_t begin = position > kBefore ? position - kBefore : 0;
  size_t end = std::min(text_.size(), position + kAfter);
  for (size_t i = begin; i < position; ++i) {
    if (text_[i] == '\n') begin = i + 1;
  }
  for (size_t i = position; i < end; ++i) {
    if (text_[i] == '\n') end = i;
  }
  std::string line(text_.substr(begin, end - begin));
  std::replace_if(line.begin(), line.end(), [](char c) { return !absl::ascii_isprint(c); }, ' ');
  std::string indent(position - begin, ' ');
  if (begin > 0) {
    line = absl::StrCat("..", line);
    indent += "  ";
  }
  if (end < text_.size()) line += "..";
  return ToStatus({.code = std::string(code_),
                   .message = std::string(message),
                   .where = absl::StrCat("column ", position + 1),
                   .expected = std::string(expected),
                   .found = std::string(found),
                   .fix = std::string(fix),
                   .excerpt = absl::StrCat("  ", line, "\n  ", indent, "^")});
}

std::string QuotedText(absl::string_view name, char quote) {
  std::string out(1, quote);
  for (char c : name) {
    if (c == quote || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  out.push_back(quote);
  return out;
}

std::string SymbolText(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), IsWordChar) ? std::string(name)
                                                                            : QuotedText(name, '"');
}

}  // namespace internal
}  // namespace shardcall
