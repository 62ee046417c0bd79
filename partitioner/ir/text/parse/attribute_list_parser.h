// SPDX-License-Identifier: Apache-2.0
// The attributes behind an instruction's operands, in any order: `, name=value`, ..
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSE_ATTRIBUTE_LIST_PARSER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSE_ATTRIBUTE_LIST_PARSER_H_

#include <vector>

#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"
#include "shardcall/partitioner/ir/text/parse/canonical_text_parser.h"
#include "shardcall/partitioner/ir/text/parse/common_attribute_parser.h"
#include "shardcall/partitioner/ir/text/parse/definitions.h"
#include "shardcall/partitioner/ir/text/parse/literal_parser.h"
#include "shardcall/partitioner/ir/text/parse/scratch.h"
#include "shardcall/partitioner/ir/text/parse/shape_parser.h"
#include "shardcall/partitioner/ir/text/parse/slot_parser.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

class AttributeListParser {
 public:
  // All must outlive this object.
  AttributeListParser(Lexer* lex, Context* context, Definitions* definitions, ShapeParser* shapes,
                      LiteralParser* literals, CommonAttributeParser* common,
                      CanonicalTextParser* canonical)
      : lex_(*lex),
        definitions_(*definitions),
        shapes_(*shapes),
        literals_(*literals),
        common_(*common),
        canonical_(*canonical),
        slots_(lex, context) {}

  enum class Progress : uint8_t { kError, kDone, kInline };
  // Reads the attributes into the slots of `s`. kInline: the value of s->pending is a computation
  // in braces, and the cursor is before it. The caller reads it, and Resume continues after it.
  Progress Parse(CompId comp, Scratch* s);
  Progress Resume(CompId comp, Scratch* s, CompId value);

 private:
  Progress ParseValue(CompId comp, Scratch* s, Attr attr);
  Progress ParseComputationValue(Scratch* s, Attr attr);
  bool ParsePlainValue(CompId comp, Scratch* s, Attr attr);
  bool ParseBools(std::vector<char>* out);
  bool ParseShapes(std::vector<const Shape*>* out);
  bool ParseInstructions(CompId comp, std::vector<InstrId>* out);
  bool CheckRequired(Scratch* s, const OpcodeAttrs& attrs);

  Lexer& lex_;
  Definitions& definitions_;
  ShapeParser& shapes_;
  LiteralParser& literals_;
  CommonAttributeParser& common_;
  CanonicalTextParser& canonical_;
  SlotParser slots_;
};

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSE_ATTRIBUTE_LIST_PARSER_H_
