// SPDX-License-Identifier: Apache-2.0
// The parser of computations and instructions, shared by its source files: parser.cc
// (computations), parser_instruction.cc, parser_operands.cc, parser_async.cc and
// parser_attributes.cc. Attribute values and shapes have parsers of their own, and the
// RecordBuilder makes records. Nested text is parsed with explicit stacks, without recursion.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSER_INTERNAL_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSER_INTERNAL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/build/name_table.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/shapes/target_shapes.h"
#include "shardcall/partitioner/ir/text/canonical_text_parser.h"
#include "shardcall/partitioner/ir/text/common_attribute_parser.h"
#include "shardcall/partitioner/ir/text/lexer.h"
#include "shardcall/partitioner/ir/text/literal_parser.h"
#include "shardcall/partitioner/ir/text/record_builder.h"
#include "shardcall/partitioner/ir/text/scratch.h"
#include "shardcall/partitioner/ir/text/shape_parser.h"
#include "shardcall/partitioner/ir/text/slot_parser.h"

namespace shardcall::inline internal::hlo_text {

class Parser {
 public:
  Parser(absl::string_view text, absl::string_view file_name, Module* module,
         const TargetShapes* targets)
      : lex_(text, file_name),
        module_(*module),
        context_(module->context()),
        names_(module),
        targets_(targets) {}
  bool Run();
  const absl::Status& status() const { return lex_.status(); }

 private:
  // parser.cc
  bool ParseComputation();
  // From `{` to `}`, including the computations in braces in its attributes; without braces one
  // instruction. The cursor is before `{`.
  bool ParseInstructions(CompId comp, bool braces);
  bool BeginBody();
  bool EndBody(CompId comp);
  bool ParseSignature(const Shape** result);
  bool ParseSingleInstruction();
  bool CheckParameters(CompId comp, const char* at);
  bool LookUpComputation(absl::string_view name, const char* at, CompId* out);
  size_t GuessInstructions() const;

  // parser_instruction.cc
  // BeginInstruction parses up to the attributes, EndInstruction the rest.
  bool BeginInstruction(CompId comp, Scratch* s);
  bool EndInstruction(CompId comp, Scratch* s);
  bool ParseNameAndShape(CompId comp, Scratch* s);
  bool ParseOpcode(Scratch* s);
  // The text in the parentheses and the closing one: operands, a number or a literal.
  bool ParseParenthesized(CompId comp, Scratch* s);
  bool ParseParameterNumber(CompId comp, Scratch* s);
  void KeepRareAttributes(Scratch* s, InstrId id);
  // Builds the record if `attrs` is null, infers the shape if there is none,
  // and appends the instruction.
  bool FinishInstruction(CompId comp, Scratch* s, const Attributes* attrs, InstrId* out);
  bool InferMissingShape(Scratch* s);
  bool InferCallShape(Scratch* s, absl::Span<const Shape* const> operands);

  // parser_operands.cc: operands in parentheses, including nested ops
  bool ParseOperands(CompId comp, Scratch* s);
  // Parses one operand. If it is a nested op, its '(' is consumed and *out is invalid.
  bool ParseOperand(CompId comp, Scratch* s, InstrId* out);
  bool BeginNestedOp(CompId comp, const Shape* shape, size_t operands, InstrId* out);
  bool EndNestedOp(CompId comp, Scratch* s, InstrId* out);
  bool AddOperandParameter(CompId comp, const Shape* shape, absl::string_view name, InstrId* out);
  bool ParseTupleIndices(CompId comp, const char* at, InstrId* id);
  bool LookUp(CompId comp, absl::string_view name, const char* at, InstrId* out);

  // parser_async.cc: async-start, -update, -done and `all-to-all-start` etc.
  bool BuildAsync(Scratch* s, const Attributes** out);
  bool WrapAsync(Scratch* s, absl::string_view thread, CompId* out);

  // parser_attributes.cc
  enum class Progress : uint8_t { kError, kDone, kInline };
  // kInline: the value of s->pending is a computation in braces, and the cursor is before it. The
  // caller reads it, and ResumeAttributes continues after it.
  Progress ParseAttributes(CompId comp, Scratch* s);
  Progress ResumeAttributes(CompId comp, Scratch* s, CompId value);
  Progress ParseValue(CompId comp, Scratch* s, Attr attr);
  Progress ParseComputationValue(Scratch* s, Attr attr);
  bool ParsePlainValue(CompId comp, Scratch* s, Attr attr);
  bool ParseBools(std::vector<char>* out);
  bool ParseShapes(std::vector<const Shape*>* out);
  bool ParseInstructions(CompId comp, std::vector<InstrId>* out);
  bool CheckRequired(Scratch* s, const OpcodeAttrs& attrs);

  Lexer lex_;
  Module& module_;
  Context& context_;
  NameTable names_;
  const TargetShapes* targets_;  // null: custom calls must have shapes
  absl::flat_hash_map<absl::string_view, CompId> computations_;
  std::unique_ptr<Scratch> scratch_ = std::make_unique<Scratch>();
  // Instructions whose attributes contain the computation in braces that is being read.
  std::vector<std::pair<CompId, std::unique_ptr<Scratch>>> waiting_;
  // Nested ops in operands that are not closed yet.
  struct NestedOp {
    Opcode opcode;
    const char* opcode_at;
    const Shape* shape;
    size_t first_operand;
  };
  std::vector<NestedOp> nested_ops_;
  std::unique_ptr<Scratch> nested_scratch_;
  ShapeParser shapes_{&lex_, &context_};
  LiteralParser literals_{&lex_, &context_, &shapes_};
  CommonAttributeParser common_{&lex_, &module_};
  CanonicalTextParser canonical_{&lex_, &context_, &common_};
  SlotParser slots_{&lex_, &context_};
  RecordBuilder records_{&lex_, &module_};
  bool has_entry_ = false;
  bool single_ = false;  // the text is one instruction: operands become parameters
};

// Names that XLA rejects, since it would change them: types, and names that start with `__`, except
// `__xla_`.
bool IsReservedName(absl::string_view name);

}  // namespace shardcall::inline internal::hlo_text

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSER_INTERNAL_H_
