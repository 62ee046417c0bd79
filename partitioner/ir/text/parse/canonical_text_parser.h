// SPDX-License-Identifier: Apache-2.0
// Attribute values that records keep as text, in one canonical form.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSE_CANONICAL_TEXT_PARSER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSE_CANONICAL_TEXT_PARSER_H_

#include <string>

#include "shardcall/partitioner/ir/text/lex/text_reader.h"
#include "shardcall/partitioner/ir/text/parse/common_attribute_parser.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

class CanonicalTextParser : TextReader {
 public:
  CanonicalTextParser(Lexer* lex, Context* context, CommonAttributeParser* common)
      : TextReader(lex, context), common_(*common) {}
  // Each returns the canonical text, which is empty for the default value.
  bool ParseStatistics(absl::string_view* out);
  bool ParseResultAccuracy(absl::string_view* out);
  bool ParseSparsity(absl::string_view* out);
  bool ParseDomain(absl::string_view* out);
  bool ParseOrigin(absl::string_view* out);
  // For a module's header.
  bool ParseRecoveryTable(std::string* out);

 private:
  bool ParseOriginTree(std::string* out);
  bool ParseOriginLeaf(std::string* out);

  CommonAttributeParser& common_;
};

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSE_CANONICAL_TEXT_PARSER_H_
