// SPDX-License-Identifier: Apache-2.0
// An opcode and what stands in its parentheses: a number, a literal, or operands, which are names
// and ops without attributes, which nest. The operands of all open ops are in one stack, the
// Scratch's operands; a nested op takes its own from the end.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSE_OPERAND_PARSER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSE_OPERAND_PARSER_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"
#include "shardcall/partitioner/ir/text/parse/definitions.h"
#include "shardcall/partitioner/ir/text/parse/instruction_maker.h"
#include "shardcall/partitioner/ir/text/parse/literal_parser.h"
#include "shardcall/partitioner/ir/text/parse/scratch.h"
#include "shardcall/partitioner/ir/text/parse/shape_parser.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

class OperandParser {
 public:
  // All must outlive this object.
  OperandParser(Lexer* lex, Module* module, Definitions* definitions, InstructionMaker* maker,
                ShapeParser* shapes, LiteralParser* literals)
      : lex_(*lex),
        module_(*module),
        context_(module->context()),
        definitions_(*definitions),
        maker_(*maker),
        shapes_(*shapes),
        literals_(*literals) {}

  // The text is one instruction: operands that are not defined become parameters.
  void set_single() { single_ = true; }

  bool ParseOpcode(Scratch* s);
  // From '(' to ')'.
  bool ParseParenthesized(CompId comp, Scratch* s);

 private:
  // Nested ops that are not closed yet.
  struct NestedOp {
    Opcode opcode;
    const char* opcode_at;
    const Shape* shape;
    size_t first_operand;
  };

  bool ParseParameterNumber(CompId comp, Scratch* s);
  bool ParseOperands(CompId comp, Scratch* s);
  // Parses one operand. If it is a nested op, its '(' is consumed and *out is invalid.
  bool ParseOperand(CompId comp, Scratch* s, InstrId* out);
  bool BeginNestedOp(CompId comp, const Shape* shape, size_t operands, InstrId* out);
  bool EndNestedOp(CompId comp, Scratch* s, InstrId* out);
  bool ParseTupleIndices(CompId comp, const char* at, InstrId* id);

  Lexer& lex_;
  Module& module_;
  Context& context_;
  Definitions& definitions_;
  InstructionMaker& maker_;
  ShapeParser& shapes_;
  LiteralParser& literals_;
  std::vector<NestedOp> nested_ops_;
  std::unique_ptr<Scratch> nested_scratch_;
  // Elements of tuples that operands named: by tuple and index.
  absl::flat_hash_map<std::pair<uint32_t, int64_t>, InstrId> elements_;
  bool single_ = false;
};

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSE_OPERAND_PARSER_H_
