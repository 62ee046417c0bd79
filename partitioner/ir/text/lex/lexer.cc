// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/lex/lexer.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/text_place.h"
#include "shardcall/sharding/base/utf8.h"
#include "shardcall/sharding/element_type.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

bool Lexer::SkipComment() {
  if (p_[1] == '/') {
    const void* newline = std::memchr(p_, '\n', end_ - p_);
    p_ = newline != nullptr ? static_cast<const char*>(newline) : end_;
    return true;
  }
  if (p_[1] != '*') return false;
  const absl::string_view rest(p_ + 2, end_ - p_ - 2);
  const size_t close = rest.find("*/");
  if (close == absl::string_view::npos) {
    Fail(p_, "E002", "A comment is not closed", "'*/'", "the end of the text");
    p_ = end_;
    return false;
  }
  p_ += 2 + close + 2;
  return true;
}

bool Lexer::CheckEncoding() {
  const char* bad = FirstNonUtf8(All());
  if (bad == nullptr) return true;
  return Fail(bad, "E001", "The text is not UTF-8", "HLO text", TokenAt(bad),
              "write other bytes in strings as octal escapes like \\377");
}

bool Lexer::BareName(absl::string_view what, absl::string_view name) {
  if (*p_ != ':' && IsReserved(name)) {
    const std::string found = TokenAt(name.data());
    return Fail(name.data(), "E001", "A reserved word stands where a name is expected", what, found,
                absl::StrCat("write %", name, " or another name"));
  }
  if (*p_ == ':') ++p_;
  return true;
}

bool Lexer::TryText(absl::string_view s) {
  Skip();
  if (std::strncmp(p_, s.data(), s.size()) != 0) return false;
  p_ += s.size();
  return true;
}

bool Lexer::ExpectText(absl::string_view s) {
  return TryText(s) || FailExpected(absl::StrCat("'", s, "'"));
}

bool Lexer::TryWord(absl::string_view word) {
  Skip();
  if (std::strncmp(p_, word.data(), word.size()) != 0 || Is(p_[word.size()], kIdent)) return false;
  p_ += word.size();
  return true;
}

bool Lexer::Integer(int64_t* out) {
  Skip();
  const char* start = p_;
  const bool negative = *p_ == '-';
  if (negative) ++p_;
  if (!Is(*p_, kDigit)) {
    p_ = start;
    return FailExpected("an integer");
  }
  uint64_t value = 0;
  bool overflow = false;
  for (; Is(*p_, kDigit); ++p_) {
    overflow |= __builtin_mul_overflow(value, uint64_t{10}, &value);
    overflow |= __builtin_add_overflow(value, static_cast<uint64_t>(*p_ - '0'), &value);
  }
  if (overflow || (negative && value > uint64_t{1} << 63)) {
    return Fail(start, "E003", "An integer is out of range", "-2^63 to 2^64-1", TokenAt(start));
  }
  *out = static_cast<int64_t>(negative ? uint64_t{0} - value : value);
  return true;
}

bool Lexer::NonNegative(int64_t* out) {
  Skip();
  const char* start = p_;
  if (!Integer(out)) return false;
  return *out >= 0 ||
         Fail(start, "E003", "An integer is out of range", "0 to 2^63-1", TokenAt(start));
}

bool Lexer::Bool(bool* out) {
  if (TryWord("true")) return *out = true, true;
  if (TryWord("false")) return *out = false, true;
  return FailExpected("'true' or 'false'");
}

bool Lexer::IntList(std::vector<int64_t>* out) {
  if (!Expect('{')) return false;
  if (TryChar('}')) return true;
  do {
    int64_t value;
    if (!Integer(&value)) return false;
    out->push_back(value);
  } while (TryChar(','));
  return Expect('}');
}

bool Lexer::Number(double* out) {
  Skip();
  const char* start = p_;
  const char* q = p_ + (*p_ == '-');
  if (std::strncmp(q, "inf", 3) == 0 || std::strncmp(q, "nan", 3) == 0) {
    *out = *q == 'i' ? std::numeric_limits<double>::infinity()
                     : std::numeric_limits<double>::quiet_NaN();
    if (*p_ == '-') *out = -*out;
    p_ = q + 3;
    return true;
  }
  if (!Is(*q, kDigit) && !(*q == '.' && Is(q[1], kDigit) && *p_ == '-')) {
    return FailExpected("a number");
  }
  const auto result = std::from_chars(p_, end_, *out);
  if (result.ec == std::errc::result_out_of_range) {
    // A value that is too small becomes zero or denormal; one that is too large is an error.
    const absl::string_view digits(start, result.ptr - start);
    const size_t e = digits.find_first_of("eE");
    if (e != absl::string_view::npos && digits[e + 1] == '-') {
      *out = *start == '-' ? -0.0 : 0.0;
    } else {
      return Fail(start, "E003", "A number is out of range", "a finite double", TokenAt(start));
    }
  } else if (result.ec != std::errc()) {
    return FailExpected("a number");
  }
  p_ = result.ptr;
  return true;
}

bool Lexer::SkipQuoted() {
  const char* start = p_;
  const char quote = *p_++;
  while (*p_ != quote) {
    if (*p_ == '\\' && p_ + 1 < end_) ++p_;
    if (p_ >= end_) {
      p_ = start;
      return Fail(start, "E002", "A string is not closed", Quoted(quote), "the end of the text");
    }
    ++p_;
  }
  ++p_;
  return true;
}

bool Lexer::String(absl::string_view* out, std::string* storage) {
  Skip();
  if (*p_ != '"' && *p_ != '\'') return FailExpected("a string in quotes");
  const char* start = p_;
  if (!SkipQuoted()) return false;
  *out = absl::string_view(start + 1, p_ - start - 2);
  if (out->find('\\') == absl::string_view::npos) return true;
  std::string error;
  if (!absl::CUnescape(*out, storage, &error)) {
    return Fail(start, "E001", "A string has an invalid escape",
                "\\n \\t \\r \\\\ \\' \\\", octal, \\x, \\u or \\U", error);
  }
  *out = *storage;
  return true;
}

bool Lexer::RawDictionary(absl::string_view* out) {
  Skip();
  const char* start = p_;
  if (*p_ != '{') return FailExpected("'{'");
  int64_t depth = 0;
  for (; p_ < end_; ++p_) {
    if (*p_ == '"') {
      if (!SkipQuoted()) return false;
      --p_;
    } else if (*p_ == '{') {
      ++depth;
    } else if (*p_ == '}' && --depth == 0) {
      ++p_;
      *out = absl::string_view(start, p_ - start);
      return true;
    }
  }
  p_ = start;
  return Fail(start, "E002", "A dictionary is not closed", "'}'", "the end of the text");
}

bool Lexer::Balanced(absl::string_view* out) {
  Skip();
  const char* start = p_;
  if (*p_ != '{' && *p_ != '(' && *p_ != '[') return FailExpected("'{'");
  int64_t depth = 0;
  for (; p_ < end_; ++p_) {
    switch (*p_) {
      case '"':
      case '\'':
        if (!SkipQuoted()) return false;
        --p_;
        break;
      case '{':
      case '(':
      case '[': ++depth; break;
      case '}':
      case ')':
      case ']':
        if (--depth == 0) {
          ++p_;
          *out = absl::string_view(start, p_ - start);
          return true;
        }
        break;
      default: break;
    }
  }
  p_ = start;
  return Fail(start, "E002", "A bracket is not closed", "its closing bracket",
              "the end of the text");
}

std::string Lexer::TokenAt(const char* p) const {
  if (p >= end_) return "the end of the text";
  if (*p == '\0') return "a NUL byte";
  const char* q = p;
  if (*q == '%' || *q == '-') ++q;
  while (Is(*q, kIdent)) ++q;
  if (q == p) ++q;
  const size_t length = std::min<size_t>(q - p, 60);
  const auto c = static_cast<unsigned char>(*p);
  if (c < 0x20 || c > 0x7e) return absl::StrCat("the byte 0x", absl::Hex(c, absl::kZeroPad2));
  return absl::StrCat("'", absl::string_view(p, length), q - p > 60 ? "..." : "", "'");
}

std::string Lexer::Where(const char* at) const { return PlaceInText(All(), at, file_); }
std::string Lexer::Excerpt(const char* at) const { return LineWithCaret(All(), at); }

bool Lexer::Fail(const char* at, absl::string_view code, absl::string_view message,
                 absl::string_view expected, absl::string_view found, absl::string_view fix) {
  if (!status_.ok()) return false;
  Diagnostic d;
  d.code = std::string(code);
  d.message = std::string(message);
  d.where = Where(at);
  d.expected = std::string(expected);
  d.found = std::string(found);
  d.fix = !fix.empty()               ? std::string(fix)
          : expected.empty()         ? ""
          : expected.front() == '\'' ? absl::StrCat("write ", expected, " here")
                                     : "change what stands at the caret to that";
  d.excerpt = Excerpt(at);
  status_ = ToStatus(d);
  return false;
}

bool Lexer::FailWith(const char* at, const absl::Status& status) {
  if (status_.ok()) status_ = In(status, absl::StrCat(Where(at), "\n", Excerpt(at)));
  return false;
}

bool Lexer::FailExpected(absl::string_view expected) {
  Skip();
  if (p_ >= end_) {
    const char* last = end_;  // point after the last token, not at an empty line
    while (last > begin_ && Is(last[-1], kBlank)) --last;
    return Fail(last, "E002", "The text ends too early", expected, "the end of the text",
                "the file may be cut off; dump it again");
  }
  if (*p_ == '\0') {
    return Fail(p_, "E001", "The text holds a NUL byte", expected, "a NUL byte",
                "give HLO text, not a binary file");
  }
  return Fail(p_, "E001", "Syntax error", expected, TokenAt(p_));
}

bool IsReserved(absl::string_view word) {
  static constexpr absl::string_view kWords[] = {"true",
                                                 "false",
                                                 "inf",
                                                 "nan",
                                                 "HloModule",
                                                 "ENTRY",
                                                 "ROOT",
                                                 "FileNames",
                                                 "FunctionNames",
                                                 "FileLocations",
                                                 "StackFrames",
                                                 "maximal",
                                                 "replicated",
                                                 "manual",
                                                 "unknown",
                                                 "unreduced",
                                                 "last_tile_dim_replicate",
                                                 "shard_as",
                                                 "shard_like"};
  // Most names contain a dot and a number, which no reserved word does.
  if (word.size() > 23 || word.find('.') != absl::string_view::npos) return false;
  if (std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords)) return true;
  const ElementType type = ElementTypeFromName(word);
  return type != ElementType::kInvalid && type != ElementType::kTuple &&
         type != ElementType::kBuffer;
}

bool IsName(absl::string_view text) {
  return !text.empty() && Is(text[0], kIdentStart) &&
         std::all_of(text.begin(), text.end(), [](char c) { return Is(c, kIdent); });
}

bool LexesAsRawDictionary(absl::string_view value) {
  if (value.size() < 2 || value.front() != '{' || value.back() != '}') return false;
  // Bytes that HLO text may not contain must be printed as escapes, in quotes.
  if (value.find('\0') != absl::string_view::npos || !IsUtf8(value)) return false;
  int64_t depth = 0;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '"') {
      for (++i; i < value.size() && value[i] != '"'; ++i) {
        if (value[i] == '\\') ++i;
      }
      if (i >= value.size()) return false;
    } else if (value[i] == '{') {
      ++depth;
    } else if (value[i] == '}' && --depth == 0) {
      return i + 1 == value.size();
    }
  }
  return false;
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
