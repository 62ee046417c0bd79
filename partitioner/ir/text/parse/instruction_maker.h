// SPDX-License-Identifier: Apache-2.0
// Makes an instruction of a module from its parsed text: builds its record, infers a shape that is
// not written, makes the computation that a short form of an async op implies.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSE_INSTRUCTION_MAKER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSE_INSTRUCTION_MAKER_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/shapes/target_shapes.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"
#include "shardcall/partitioner/ir/text/parse/definitions.h"
#include "shardcall/partitioner/ir/text/parse/record_builder.h"
#include "shardcall/partitioner/ir/text/parse/scratch.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

class InstructionMaker {
 public:
  // All must outlive this object. `targets` may be null: custom calls must then have shapes.
  InstructionMaker(Lexer* lex, Module* module, Definitions* definitions,
                   const TargetShapes* targets)
      : lex_(*lex),
        module_(*module),
        context_(module->context()),
        definitions_(*definitions),
        targets_(targets),
        records_(lex, module) {}

  // Appends the instruction in `s`, whose operands and attributes are read, to the computation.
  bool Make(CompId comp, Scratch* s, InstrId* out);
  // A parameter behind those that the computation has. `name` may be empty.
  InstrId MakeParameter(CompId comp, const Shape* shape, absl::string_view name);

 private:
  void KeepRareAttributes(Scratch* s, InstrId id);
  bool InferShape(Scratch* s);
  bool InferCallShape(Scratch* s, absl::Span<const Shape* const> operands);

  // async_instruction.cc: async-start, -update, -done and `all-to-all-start` etc.
  bool BuildAsync(Scratch* s, const Attributes** out);
  bool WrapAsync(Scratch* s, absl::string_view thread, CompId* out);

  Lexer& lex_;
  Module& module_;
  Context& context_;
  Definitions& definitions_;
  const TargetShapes* targets_;
  RecordBuilder records_;
};

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSE_INSTRUCTION_MAKER_H_
