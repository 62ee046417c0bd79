// SPDX-License-Identifier: Apache-2.0
// Values of constants.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSE_LITERAL_PARSER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSE_LITERAL_PARSER_H_

#include <cstdint>
#include <vector>

#include "shardcall/partitioner/ir/literal.h"
#include "shardcall/partitioner/ir/text/lex/text_reader.h"
#include "shardcall/partitioner/ir/text/parse/shape_parser.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

class LiteralParser : TextReader {
 public:
  LiteralParser(Lexer* lex, Context* context, ShapeParser* shapes)
      : TextReader(lex, context), shapes_(*shapes) {}
  // The value of a constant of that shape.
  bool Parse(const Shape* shape, const Literal** out);
  // A shape, then its value.
  bool ParseWithShape(const Literal** out);

 private:
  bool ParseArray(const Shape* shape, const Literal** out);
  bool TryElided(const Shape* shape, const Literal** out);
  char* Grow(int64_t bytes);
  bool ParseElements(ElementType type, int64_t count);
  bool ParseElement(ElementType type, char* out);
  bool ParseReal(ElementType type, char* out);

  ShapeParser& shapes_;
  std::vector<char> bytes_;
};

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSE_LITERAL_PARSER_H_
