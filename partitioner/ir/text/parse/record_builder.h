// SPDX-License-Identifier: Apache-2.0
// Makes an instruction's interned record from the slots of its attributes.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSE_RECORD_BUILDER_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSE_RECORD_BUILDER_H_

#include "shardcall/partitioner/ir/attribute_records.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/text/lex/lexer.h"
#include "shardcall/partitioner/ir/text/parse/scratch.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

class RecordBuilder {
 public:
  // `module` must contain the operands of the instructions.
  RecordBuilder(Lexer* lex, const Module* module)
      : lex_(*lex), module_(*module), context_(module->context()) {}
  // The interned record of an op, from its attributes in `s`.
  bool Build(Scratch* s, Opcode opcode, const Attributes** out);

 private:
  // By the schema; records with fields that have no row there have overloads of their own.
  template <typename Record>
  bool Build(RecordType<Record>, Scratch* s, Opcode opcode, const Attributes** out);
  template <typename Record>
  bool ReadSlots(const Scratch& s, Record* record);
  template <typename Row, typename T>
  bool ReadSlot(const Scratch& s, const Row& row, T* to);
  bool OneDimension(const Scratch& s, int64_t* out);
  // The word in the slot must be in the list; its index goes to *out.
  bool WordIndex(const Scratch& s, Attr attr, const WordList& list, int* out);
  bool Build(RecordType<NoneAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<CompareAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<DimensionsAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<ReduceAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<TopKAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<GatherAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  // record_builder_own.cc
  bool Build(RecordType<ParameterAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<ConstantAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<SliceAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<PadAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<ConditionalAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<CustomCallAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<OutfeedAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<CollectiveAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<PermuteAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<AsyncAttrs>, Scratch* s, Opcode opcode, const Attributes** out);

  Lexer& lex_;
  const Module& module_;
  Context& context_;
};

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSE_RECORD_BUILDER_H_
