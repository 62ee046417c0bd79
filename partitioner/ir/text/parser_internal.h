// SPDX-License-Identifier: Apache-2.0
// The parser's state, shared by its source files: parser.cc (computations),
// parser_header.cc (module header and tables), parser_instruction.cc and
// parser_operands.cc, parser_async.cc, parser_shape.cc, parser_literal.cc,
// parser_attributes.cc, parser_values.cc and parser_structured.cc (values of op
// attributes), parser_common.cc (metadata, frontend attributes, shardings), and
// parser_records.cc with its _own (values to records). What nests is read with
// stacks of its own, without recursion.
//
// Attributes come in any order, so each value is read into a slot of Scratch;
// when the instruction ends, its record is built from the slots and interned.
// Scratch is reused, so nothing is allocated per instruction.
#ifndef SHARDCALL_PARTITIONER_IR_TEXT_PARSER_INTERNAL_H_
#define SHARDCALL_PARTITIONER_IR_TEXT_PARSER_INTERNAL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/attribute_names.h"
#include "shardcall/partitioner/ir/attribute_records.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/build/name_table.h"
#include "shardcall/partitioner/ir/module.h"
#include "shardcall/partitioner/ir/shapes/target_shapes.h"
#include "shardcall/partitioner/ir/text/lexer.h"

namespace shardcall::hlo_text {

struct Slot {
  const char* at = nullptr;       // where the value starts
  int64_t value = 0;              // int, bool, computation id
  double number = 0;              // float
  absl::string_view text;         // word, string, raw text
  uint32_t begin = 0, count = 0;  // range in one of Scratch's pools
};

// What one instruction's text holds.
struct Scratch {
  const char* start = nullptr;  // first character of its name
  const char* opcode_at = nullptr;
  Instruction proto;
  std::vector<InstrId> operands;
  AttrSet seen;
  Slot slots[kNumAttrs];
  std::vector<int64_t> ints;
  std::vector<std::pair<uint32_t, uint32_t>> lists;  // replica groups: ranges of ints
  uint32_t last_count = 0;                           // length of the last inner list
  std::vector<CompId> comps;
  std::vector<const Shape*> shapes;
  std::vector<InstrId> controls;
  std::vector<char> bools;
  const Shape* outfeed_shape = nullptr;
  const Literal* literal = nullptr;
  int64_t parameter_number = 0;
  ReplicaGroups groups;  // without its lists, which are in `lists`
  Opcode opcode;
  int wrapped = kNumOpcodes;  // of `<wrapped>-start` and the like
  bool is_root = false;
  Attr pending;  // whose value is a computation in braces that is being read

  void Reset();
  bool Has(Attr a) const { return seen.Has(a); }
  const Slot& operator[](Attr a) const { return slots[static_cast<int>(a)]; }
  Slot& operator[](Attr a) { return slots[static_cast<int>(a)]; }
  Ints IntsOf(Attr a) const {
    return absl::MakeConstSpan(ints).subspan((*this)[a].begin, (*this)[a].count);
  }
  // Part `k` of several equally long ranges stored one after another.
  Ints Part(Attr a, int k, int parts) const {
    const Slot& s = (*this)[a];
    return absl::MakeConstSpan(ints).subspan(s.begin + k * (s.count / parts), s.count / parts);
  }
};

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
  // parser_header.cc
  bool ParseHeader();
  bool ParseHeaderAttribute(absl::string_view name, const char* at);
  bool ParseAliases();
  bool ParseDonors();
  bool ParseIndex(std::vector<int64_t>* out);
  bool ParseBoolOrList(std::vector<bool>* out);
  bool ParseEntryLayout();
  bool ParseStackTables();
  bool ParseTableNumber(bool* more);
  bool ParseTableFields(absl::Span<const absl::string_view> keys, int32_t* values);

  // parser.cc
  bool ParseComputation();
  // From `{` to `}`, with the computations in braces that its attributes hold;
  // without braces one instruction. The cursor stands before `{`.
  bool ParseInstructions(CompId comp, bool braces);
  bool BeginBody();
  bool EndBody(CompId comp);
  bool ParseSignature(const Shape** result);
  bool ParseSingleInstruction();
  bool CheckParameters(CompId comp, const char* at);
  bool LookUpComputation(absl::string_view name, const char* at, CompId* out);
  size_t GuessInstructions() const;

  // parser_instruction.cc
  // Up to the attributes, then what stands after them.
  bool BeginInstruction(CompId comp, Scratch* s);
  bool EndInstruction(CompId comp, Scratch* s);
  bool ParseNameAndShape(CompId comp, Scratch* s);
  bool ParseOpcode(Scratch* s);
  // What stands in the parentheses, the closing one included: operands, a number
  // or a literal.
  bool ParseParenthesized(CompId comp, Scratch* s);
  bool ParseParameterNumber(CompId comp, Scratch* s);
  void KeepRareAttributes(Scratch* s, InstrId id);
  // Builds the record if `attrs` is null, infers the shape if there is none,
  // and appends the instruction.
  bool FinishInstruction(CompId comp, Scratch* s, const Attributes* attrs, InstrId* out);
  bool InferMissingShape(Scratch* s);
  bool InferCallShape(Scratch* s, absl::Span<const Shape* const> operands);

  // parser_operands.cc: what stands between parentheses, ops in them included
  bool ParseOperands(CompId comp, Scratch* s);
  // One operand; nothing in *out if it opens a nested op, whose '(' is consumed.
  bool ParseOperand(CompId comp, Scratch* s, InstrId* out);
  bool BeginNestedOp(CompId comp, const Shape* shape, size_t operands, InstrId* out);
  bool EndNestedOp(CompId comp, Scratch* s, InstrId* out);
  bool AddOperandParameter(CompId comp, const Shape* shape, absl::string_view name, InstrId* out);
  bool ParseTupleIndices(CompId comp, const char* at, InstrId* id);
  bool LookUp(CompId comp, absl::string_view name, const char* at, InstrId* out);

  // parser_async.cc: async-start, -update, -done and `all-to-all-start` etc.
  bool BuildAsync(Scratch* s, const Attributes** out);
  bool WrapAsync(Scratch* s, absl::string_view thread, CompId* out);

  // parser_shape.cc
  bool ParseShape(const Shape** out);
  bool ParseArrayShape(const Shape** out);
  bool ParseArrayShapeSlow(const Shape** out);
  bool ParseLayout(int rank, std::vector<int64_t>* minor_to_major, std::string* suffix);
  bool ParseLayoutSuffix(std::string* suffix);
  bool ParseTiles(std::string* suffix);

  // parser_literal.cc
  bool ParseLiteral(const Shape* shape, const Literal** out);
  bool ParseLiteralWithShape(const Literal** out);
  bool ParseArrayLiteral(const Shape* shape, const Literal** out);
  bool TryElided(const Shape* shape, const Literal** out);
  char* GrowLiteral(int64_t bytes);
  bool ParseElements(ElementType type, int64_t count);
  bool ParseElement(ElementType type, char* out);
  bool ParseReal(ElementType type, char* out);

  // parser_attributes.cc
  enum class Progress : uint8_t { kError, kDone, kInline };
  // kInline: the value of s->pending is a computation in braces, which is to be
  // read; the cursor stands before it, and ResumeAttributes goes on from there.
  Progress ParseAttributes(CompId comp, Scratch* s);
  Progress ResumeAttributes(CompId comp, Scratch* s, CompId value);
  Progress ParseValue(CompId comp, Scratch* s, Attr attr);
  Progress ParseComputationValue(Scratch* s, Attr attr);
  bool ParsePlainValue(CompId comp, Scratch* s, Attr attr);
  bool CheckRequired(Scratch* s, const OpcodeAttrs& attrs);
  bool ParseIntsOrLists(Scratch* s, Slot* slot);
  bool ParseSliceRanges(Scratch* s, Slot* slot);
  bool ParsePadding(Scratch* s, Slot* slot);
  bool ParseWindow(Scratch* s, Slot* slot);
  bool ParseWindowField(Scratch* s, absl::string_view field, int64_t rank, size_t begin);
  bool ParseReplicaGroups(Scratch* s, Slot* slot);
  bool ParseIotaGroups(Scratch* s);
  bool ParseAliasing(Slot* slot);
  bool ParsePrecision(Slot* slot);
  bool ParseDimLabels(Slot* slot);
  bool KeepString(Slot* slot);

  // parser_structured.cc: values kept as canonical text
  bool ParseStatistics(Slot* slot);
  bool ParseResultAccuracy(Slot* slot);
  bool ParseSparsity(Slot* slot);
  bool ParseDomain(Slot* slot);
  bool ParseOrigin(Slot* slot);
  bool ParseOriginTree(std::string* out);
  bool ParseOriginLeaf(std::string* out);
  bool ParseRecoveryTable();
  bool ParseMeshGroups(Scratch* s);

  // parser_common.cc
  bool ParseSharding(const HloSharding** out);
  bool ParseFrontend(const FrontendAttributes** out);
  bool ParseMetadata(const Metadata** out);
  bool ParseBackendConfig(absl::string_view* out);

  // parser_records.cc: what has a row in the schema
  bool BuildAttributes(Scratch* s, Opcode opcode, const Attributes** out);
  template <typename Record>
  bool Build(RecordType<Record>, Scratch* s, Opcode opcode, const Attributes** out);
  template <typename Record>
  bool ReadSlots(const Scratch& s, Record* record);
  template <typename Row, typename T>
  bool ReadSlot(const Scratch& s, const Row& row, T* to);
  bool OneDimension(const Scratch& s, int64_t* out);
  // The slot's word must be one of the list; its index goes to *out.
  bool WordIndex(const Scratch& s, Attr attr, const WordList& list, int* out);
  bool Build(RecordType<NoneAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<CompareAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<DimensionsAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<ReduceAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  bool Build(RecordType<GatherAttrs>, Scratch* s, Opcode opcode, const Attributes** out);
  // parser_records_own.cc
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

  Lexer lex_;
  Module& module_;
  Context& context_;
  NameTable names_;
  const TargetShapes* targets_;  // null: custom calls say their shapes
  absl::flat_hash_map<absl::string_view, CompId> computations_;
  absl::flat_hash_map<absl::string_view, const Shape*> shape_memo_;
  absl::flat_hash_map<absl::string_view, const HloSharding*> sharding_memo_;
  absl::flat_hash_map<absl::string_view, const FrontendAttributes*> frontend_memo_;
  std::unique_ptr<Scratch> scratch_ = std::make_unique<Scratch>();
  // Instructions that wait for the end of a computation in braces.
  std::vector<std::pair<CompId, std::unique_ptr<Scratch>>> waiting_;
  // Ops that stand in an operand and are not closed yet.
  struct NestedOp {
    Opcode opcode;
    const char* opcode_at;
    const Shape* shape;
    size_t first_operand;
  };
  std::vector<NestedOp> nested_ops_;
  std::unique_ptr<Scratch> nested_scratch_;
  std::vector<int64_t> dims_, layout_;
  std::vector<char> literal_bytes_;
  std::string string_storage_, suffix_;
  bool has_entry_ = false;
  bool single_ = false;  // the text is one instruction: operands become parameters
};

// Names of instructions that XLA would change, and refuses: types, and `__x` but
// for `__xla_x`.
bool IsReservedName(absl::string_view name);

// `mesh['a'=2,'b'=4] {'b'}`: device groups along the axes of the sharding's one
// dimension.
std::string MeshGroupsText(const HloSharding& sharding);

// The candidate closest to `word`, or empty if none is close.
absl::string_view Nearest(absl::string_view word, absl::Span<const absl::string_view> candidates);
std::string DidYouMean(absl::string_view word, absl::Span<const absl::string_view> candidates);

}  // namespace shardcall::hlo_text

#endif  // SHARDCALL_PARTITIONER_IR_TEXT_PARSER_INTERNAL_H_
