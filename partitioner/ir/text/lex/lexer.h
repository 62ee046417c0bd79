// SPDX-License-Identifier: Apache-2.0
// The lexical level of HLO text: a cursor over text that stays in memory, with small readers for
// each kind of token. Nothing is copied and there are no token objects: readers return views into
// the text. There is one short reader for each kind of token. Readers return false on error; the
// first error is kept as a diagnostic with line, column, the source line and a caret. The text must
// be followed by a NUL byte (as in std::string).
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_LEX_LEXER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_LEX_LEXER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

// Tuples, operands, literals and inline computations that are nested deeper are rejected, as in
// XLA. No code here or in later stages recurses over this depth.
inline constexpr int kMaxNesting = 8192;

enum CharClass : uint8_t { kIdentStart = 1, kIdent = 2, kDigit = 4, kBlank = 8 };
struct CharTable {
  uint8_t classes[256] = {};
  constexpr CharTable() {
    for (int c = 'a'; c <= 'z'; ++c) classes[c] = kIdentStart | kIdent;
    for (int c = 'A'; c <= 'Z'; ++c) classes[c] = kIdentStart | kIdent;
    classes[static_cast<int>('_')] = kIdentStart | kIdent;
    for (int c = '0'; c <= '9'; ++c) classes[c] = kIdent | kDigit;
    classes[static_cast<int>('.')] = classes[static_cast<int>('-')] = kIdent;
    for (char c : {' ', '\t', '\n', '\r'}) classes[static_cast<int>(c)] = kBlank;
  }
};
inline constexpr CharTable kCharTable;
inline bool Is(char c, uint8_t classes) {
  return kCharTable.classes[static_cast<unsigned char>(c)] & classes;
}

class Lexer {
 public:
  Lexer(absl::string_view text, absl::string_view file_name)
      : begin_(text.data()), end_(text.data() + text.size()), p_(begin_), file_(file_name) {}

  // Skips blanks and comments. All readers except the raw ones do so first.
  void Skip() {
    while (true) {
      while (Is(*p_, kBlank)) ++p_;
      if (*p_ != '/' || !SkipComment()) return;
    }
  }
  const char* at() const { return p_; }
  void set_at(const char* p) { p_ = p; }
  const char* end() const { return end_; }
  bool AtEnd() {
    Skip();
    return p_ == end_;
  }
  char Peek() {
    Skip();
    return *p_;
  }

  // Consumes the character if it is next.
  bool TryChar(char c) {
    if (Peek() != c) return false;
    ++p_;
    return true;
  }
  bool Expect(char c) { return TryChar(c) || FailExpected(Quoted(c)); }
  // Consumes punctuation like "->" or "<=".
  bool TryText(absl::string_view s);
  bool ExpectText(absl::string_view s);
  // Consumes a whole identifier if it equals `word`.
  bool TryWord(absl::string_view word);

  // `[A-Za-z_][A-Za-z0-9_.-]*`; empty without moving if there is none.
  absl::string_view TryIdentifier() {
    Skip();
    const char* start = p_;
    if (!Is(*p_, kIdentStart)) return {};
    do ++p_;
    while (Is(*p_, kIdent));
    return absl::string_view(start, p_ - start);
  }
  bool Identifier(absl::string_view what, absl::string_view* out) {
    *out = TryIdentifier();
    return !out->empty() || FailExpected(what);
  }
  // A name with `%` or without. Without `%`, a colon directly after it is part of it, and it must
  // not be a reserved word unless it has that colon.
  bool Name(absl::string_view what, absl::string_view* out) {
    Skip();
    const char* start = p_;
    const bool percent = *p_ == '%';
    p_ += percent;
    if (!Is(*p_, kIdentStart)) {
      p_ = start;
      return FailExpected(what);
    }
    *out = TryIdentifier();
    return percent || BareName(what, *out);
  }

  // False, with a diagnostic, if the text is not UTF-8.
  bool CheckEncoding();

  // Up to 2^64-1 as two's complement, down to -2^63.
  bool Integer(int64_t* out);
  // An integer >= 0 and below 2^63.
  bool NonNegative(int64_t* out);
  bool Bool(bool* out);
  // `{1,2}`; appended to *out.
  bool IntList(std::vector<int64_t>* out);
  // A number as text, `-?[0-9.]+([eE][+-]?[0-9]+)?`; inf and nan too.
  bool Number(double* out);
  // A quoted string. *out is the text between the quotes if it has no escapes, else the unescaped
  // text kept in *storage.
  bool String(absl::string_view* out, std::string* storage);
  // From `{` to its `}`, both included; strings in double quotes are skipped.
  bool RawDictionary(absl::string_view* out);
  // The same for any bracket, also skipping strings in single quotes.
  bool Balanced(absl::string_view* out);

  // Keeps the first error; always returns false.
  bool Fail(const char* at, absl::string_view code, absl::string_view message,
            absl::string_view expected = "", absl::string_view found = "",
            absl::string_view fix = "");
  // Like Fail, with a status that was made elsewhere; adds the place.
  bool FailWith(const char* at, const absl::Status& status);
  // E001 at the cursor; "found" is the token there.
  bool FailExpected(absl::string_view expected);
  bool failed() const { return !status_.ok(); }
  const absl::Status& status() const { return status_; }
  std::string TokenAt(const char* p) const;
  // "file:line:column"
  std::string Where(const char* at) const;
  // The line of `at`, with a caret below it.
  std::string Excerpt(const char* at) const;

  static std::string Quoted(char c) { return std::string("'") + c + "'"; }

 private:
  bool SkipComment();
  bool SkipQuoted();
  bool BareName(absl::string_view what, absl::string_view name);
  absl::string_view All() const { return {begin_, static_cast<size_t>(end_ - begin_)}; }

  const char* begin_;
  const char* end_;
  const char* p_;
  std::string file_;
  absl::Status status_;
};

// Types, `nan`, `ENTRY`, `replicated` and so on, which are names only with `%`.
bool IsReserved(absl::string_view word);
// An identifier of HLO text.
bool IsName(absl::string_view text);

// True if the whole of `value` reads as one raw dictionary; then it is printed
// bare, else quoted.
bool LexesAsRawDictionary(absl::string_view value);

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_LEX_LEXER_H_
