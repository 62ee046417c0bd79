// SPDX-License-Identifier: Apache-2.0
// The parser of modules, computations and instructions. What an instruction consists of has parsers
// of its own. Nested text is parsed with explicit stacks, without recursion.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSE_MODULE_PARSER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSE_MODULE_PARSER_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/shapes/target_shapes.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"
#include "shardcall/partitioner/ir/text/parse/attribute_list_parser.h"
#include "shardcall/partitioner/ir/text/parse/definitions.h"
#include "shardcall/partitioner/ir/text/parse/instruction_maker.h"
#include "shardcall/partitioner/ir/text/parse/operand_parser.h"
#include "shardcall/partitioner/ir/text/parse/scratch.h"
#include "shardcall/partitioner/ir/text/parse/shape_parser.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

class ModuleParser {
 public:
  ModuleParser(absl::string_view text, absl::string_view file_name, Module* module,
               const TargetShapes* targets)
      : lex_(text, file_name),
        module_(*module),
        context_(module->context()),
        definitions_(&lex_, module),
        maker_(&lex_, module, &definitions_, targets) {}
  bool Run();
  const absl::Status& status() const { return lex_.status(); }

 private:
  using Progress = AttributeListParser::Progress;

  bool ParseComputation();
  // From `{` to `}`, including the computations in braces in its attributes; without braces one
  // instruction. The cursor is before `{`.
  bool ParseInstructions(CompId comp, bool braces);
  bool BeginBody();
  bool EndBody(CompId comp);
  bool ParseSignature(const Shape** result);
  bool ParseSingleInstruction();
  bool CheckParameters(CompId comp, const char* at);
  size_t GuessInstructions() const;
  // BeginInstruction parses up to the attributes; EndInstruction makes the instruction.
  bool BeginInstruction(CompId comp, Scratch* s);
  bool EndInstruction(CompId comp, Scratch* s);
  bool ParseNameAndShape(CompId comp, Scratch* s);

  Lexer lex_;
  Module& module_;
  Context& context_;
  Definitions definitions_;
  InstructionMaker maker_;
  ShapeParser shapes_{&lex_, &context_};
  LiteralParser literals_{&lex_, &context_, &shapes_};
  CommonAttributeParser common_{&lex_, &module_};
  CanonicalTextParser canonical_{&lex_, &context_, &common_};
  OperandParser operands_{&lex_, &module_, &definitions_, &maker_, &shapes_, &literals_};
  AttributeListParser attributes_{&lex_,      &context_, &definitions_, &shapes_,
                                  &literals_, &common_,  &canonical_};
  std::unique_ptr<Scratch> scratch_ = std::make_unique<Scratch>();
  // Instructions whose attributes contain the computation in braces that is being read.
  std::vector<std::pair<CompId, std::unique_ptr<Scratch>>> waiting_;
  bool has_entry_ = false;
  bool single_ = false;  // the text is one instruction: operands become parameters
};

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSE_MODULE_PARSER_H_
