// SPDX-License-Identifier: Apache-2.0
// Tokenizer for the texts of meshes, shardings and rules. It skips blanks and comments; its errors
// show the place with a caret.
#ifndef SHARDCALL_SHARDING_BASE_TEXT_CURSOR_H_
#define SHARDCALL_SHARDING_BASE_TEXT_CURSOR_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {

class TextCursor {
 public:
  // `what` names the text in messages ("sharding", "rule"), `code` its errors.
  TextCursor(absl::string_view text, absl::string_view what, absl::string_view code)
      : text_(text), what_(what), code_(code) {}

  size_t position() const { return pos_; }
  void set_position(size_t position) { pos_ = position; }
  absl::string_view text() const { return text_; }

  void SkipSpace();  // blanks, /* */ and // comments
  bool AtEnd();
  // Both skip blanks first. Peek says whether `token` comes next; Consume also steps over it.
  bool Peek(absl::string_view token);
  bool Consume(absl::string_view token);
  // As Consume, but the identifier must end there.
  bool ConsumeWord(absl::string_view word);
  absl::Status Expect(absl::string_view token);
  absl::Status ExpectEnd();

  // Letters, digits, '_', '-' and '.'; empty if none comes next.
  absl::string_view Identifier();
  // A decimal integer, at least 0.
  absl::StatusOr<int64_t> Integer();
  // '..' or ".."; `\` escapes the next character.
  absl::StatusOr<std::string> Quoted();
  // From '{' to the matching '}', skipping strings; as written.
  absl::StatusOr<absl::string_view> Braces();

  // An error at the current position, or at `position`.
  absl::Status Error(absl::string_view expected);
  absl::Status ErrorAt(size_t position, absl::string_view message, absl::string_view expected = "",
                       absl::string_view found = "", absl::string_view fix = "") const;

 private:
  absl::string_view text_, what_, code_;
  size_t pos_ = 0;
};

// `name` in quotes, as Quoted() reads it: `quote` and `\` are escaped.
std::string QuotedText(absl::string_view name, char quote);
// A symbol such as the name of a mesh: without quotes where Identifier() reads it, else quoted.
std::string SymbolText(absl::string_view name);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_TEXT_CURSOR_H_
