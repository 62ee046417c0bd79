// SPDX-License-Identifier: Apache-2.0
// Common to the parts of the parser: the text, and the Context that keeps values. All functions
// return false after an error, which the Lexer holds.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_LEX_TEXT_READER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_LEX_TEXT_READER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"
#include "shardcall/sharding/context.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

class TextReader {
 protected:
  TextReader(Lexer* lex, Context* context) : lex_(*lex), context_(*context) {}

  // A string in quotes. The Context keeps a copy if it differs from its text (escapes).
  bool KeptString(absl::string_view* out) {
    if (!lex_.String(out, &storage_)) return false;
    if (out->data() == storage_.data()) *out = context_.Intern(*out);
    return true;
  }

  Lexer& lex_;
  Context& context_;

 private:
  std::string storage_;
};

// Names the candidate closest to `word`; empty if none is close.
std::string DidYouMean(absl::string_view word, absl::Span<const absl::string_view> candidates);

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_LEX_TEXT_READER_H_
