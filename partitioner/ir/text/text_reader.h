// SPDX-License-Identifier: Apache-2.0
// What the parts of the parser have in common: the text, and where values are kept. All of
// their functions return false after an error, which the Lexer has.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_TEXT_READER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_TEXT_READER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/text/lexer.h"
#include "shardcall/sharding/context.h"

namespace shardcall::hlo_text {

class TextReader {
 protected:
  TextReader(Lexer* lex, Context* context) : lex_(*lex), context_(*context) {}

  // A string in quotes; kept by the Context where it is not as it stands in the text.
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

}  // namespace shardcall::hlo_text

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_TEXT_READER_H_
