// SPDX-License-Identifier: Apache-2.0
// The module's header line and the tables of source locations.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSE_HEADER_PARSER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSE_HEADER_PARSER_H_

#include <cstdint>
#include <vector>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/text/lex/text_reader.h"
#include "shardcall/partitioner/ir/text/parse/canonical_text_parser.h"
#include "shardcall/partitioner/ir/text/parse/common_attribute_parser.h"
#include "shardcall/partitioner/ir/text/parse/shape_parser.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

class HeaderParser : TextReader {
 public:
  HeaderParser(Lexer* lex, Module* module, ShapeParser* shapes, CommonAttributeParser* common,
               CanonicalTextParser* canonical)
      : TextReader(lex, &module->context()),
        header_(module->header),
        shapes_(*shapes),
        common_(*common),
        canonical_(*canonical) {}
  // Parses the text after `HloModule`, up to the first computation.
  bool Parse();

 private:
  bool ParseAttribute(absl::string_view name, const char* at);
  bool ParseAliases();
  bool ParseDonors();
  bool ParseIndex(std::vector<int64_t>* out);
  bool ParseBoolOrList(std::vector<bool>* out);
  bool ParseEntryLayout();
  bool ParseStackTables();
  bool ParseTableNumber(bool* more);
  bool ParseTableFields(absl::Span<const absl::string_view> keys, int32_t* values);

  ModuleHeader& header_;
  ShapeParser& shapes_;
  CommonAttributeParser& common_;
  CanonicalTextParser& canonical_;
};

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSE_HEADER_PARSER_H_
