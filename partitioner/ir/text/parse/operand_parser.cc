// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/parse/operand_parser.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/ir/text/lex/text_reader.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

bool OperandParser::ParseOpcode(Scratch* s) {
  Opcode* opcode = &s->opcode;
  lex_.Skip();
  s->opcode_at = lex_.at();
  absl::string_view text;
  if (!lex_.Identifier("an opcode", &text)) return false;
  if (OpcodeFromText(text, opcode)) return true;
  absl::string_view base = text;
  Opcode inner;
  bool sugar = true;
  if (absl::ConsumeSuffix(&base, "-start")) {
    *opcode = Opcode::kAsyncStart;
  } else if (absl::ConsumeSuffix(&base, "-update")) {
    *opcode = Opcode::kAsyncUpdate;
  } else if (absl::ConsumeSuffix(&base, "-done")) {
    *opcode = Opcode::kAsyncDone;
  } else {
    sugar = false;
  }
  if (sugar && OpcodeFromText(base, &inner) && HasShortAsyncForm(inner)) {
    s->wrapped = static_cast<int>(inner);
    return true;
  }
  if (ElementTypeFromName(text) != ElementType::kInvalid) {
    return lex_.Fail(s->opcode_at, "E010", "A shape has no brackets", absl::StrCat(text, "[]"),
                     lex_.TokenAt(s->opcode_at));
  }
  std::vector<absl::string_view> names;
  for (int i = 0; i < kNumOpcodes; ++i) names.push_back(OpcodeText(static_cast<Opcode>(i)));
  return lex_.Fail(s->opcode_at, "E004", "Unknown opcode", "an HLO opcode",
                   lex_.TokenAt(s->opcode_at), DidYouMean(text, names));
}

bool OperandParser::ParseParenthesized(CompId comp, Scratch* s) {
  if (!lex_.Expect('(')) return false;
  if (s->opcode == Opcode::kParameter) return ParseParameterNumber(comp, s) && lex_.Expect(')');
  if (s->opcode != Opcode::kConstant) return ParseOperands(comp, s);
  if (s->proto.shape == nullptr) {
    return lex_.Fail(s->opcode_at, "E015", "A constant needs its shape",
                     "a shape before the opcode");
  }
  return literals_.Parse(s->proto.shape, &s->literal) && lex_.Expect(')');
}

bool OperandParser::ParseParameterNumber(CompId comp, Scratch* s) {
  lex_.Skip();
  const char* at = lex_.at();
  if (!lex_.NonNegative(&s->parameter_number)) return false;
  const auto& parameters = module_.comp(comp).parameters;
  const int64_t n = s->parameter_number;
  // A computation cannot have more parameters than its text has characters.
  if (n > lex_.end() - at + static_cast<int64_t>(module_.num_instructions())) {
    return lex_.Fail(at, "E013", "A parameter number is too large", "dense numbers from 0",
                     lex_.TokenAt(at));
  }
  if (n < static_cast<int64_t>(parameters.size()) && parameters[n].valid()) {
    return lex_.Fail(at, "E013", "A parameter number stands twice", "dense numbers from 0",
                     lex_.TokenAt(at));
  }
  return true;
}

bool OperandParser::ParseOperands(CompId comp, Scratch* s) {
  if (lex_.TryChar(')')) return true;
  nested_ops_.clear();
  while (true) {
    InstrId id;
    if (!ParseOperand(comp, s, &id)) return false;
    if (!id.valid()) {
      if (!lex_.TryChar(')')) continue;  // continue with the nested op's first operand
      if (!EndNestedOp(comp, s, &id)) return false;
    }
    while (true) {
      s->operands.push_back(id);
      if (lex_.TryChar(',')) break;
      if (!lex_.TryChar(')')) return lex_.FailExpected("',' or ')'");
      if (nested_ops_.empty()) return true;
      if (!EndNestedOp(comp, s, &id)) return false;
    }
  }
}

// [shape] name ['#' index], or [shape] opcode(operands)
bool OperandParser::ParseOperand(CompId comp, Scratch* s, InstrId* out) {
  lex_.Skip();
  const char* at = lex_.at();
  const Shape* shape = nullptr;
  if (*at != '%') {
    const char* p = at;
    while (Is(*p, kIdent)) ++p;
    if (*p == '[' || *at == '(' || (p - at == 1 && *at == 'b' && *p == '(')) {
      if (!shapes_.Parse(&shape)) return false;
      lex_.Skip();
      at = lex_.at();
      p = at;
      while (Is(*p, kIdent)) ++p;
    }
    if (single_ && (*at == ',' || *at == ')')) {  // a shape alone is a parameter
      if (shape == nullptr) return lex_.FailExpected("an operand with its shape");
      *out = maker_.MakeParameter(comp, shape, {});
      return true;
    }
    while (Is(*p, kBlank)) ++p;
    if (*p == '(' && *at != '%') return BeginNestedOp(comp, shape, s->operands.size(), out);
  }
  absl::string_view name;
  if (!lex_.Name("an operand", &name)) return false;
  if (single_ && shape != nullptr && !definitions_.Has(comp, name)) {
    *out = maker_.MakeParameter(comp, shape, name);
  } else if (!definitions_.Find(comp, name, at, out)) {
    return false;
  }
  const Shape* found = module_.instr(*out).shape;
  if (shape != nullptr && shape->bare() != found->bare()) {
    return lex_.Fail(at, "E010", "An operand's shape is not that of its instruction",
                     found->ToString(false), shape->ToString(false));
  }
  return *lex_.at() != '#' || ParseTupleIndices(comp, at, out);
}

// `#1#0`: elements of a tuple. Operands that name the same one are one instruction, as XLA reads
// what it prints with --xla_dump_compact_gte, the default since jaxlib 0.12.
bool OperandParser::ParseTupleIndices(CompId comp, const char* at, InstrId* id) {
  while (*lex_.at() == '#') {
    lex_.set_at(lex_.at() + 1);
    TupleIndexAttrs a;
    if (!lex_.NonNegative(&a.index)) return false;
    const Shape* tuple = module_.instr(*id).shape;
    if (!tuple->IsTuple() || a.index >= static_cast<int64_t>(tuple->tuple().size())) {
      return lex_.Fail(at, "E010", "There is no such tuple element",
                       absl::StrCat("an index into ", tuple->ToString(false)),
                       absl::StrCat(a.index));
    }
    const InstrId of = *id;
    InstrId& element = elements_[{of.value, a.index}];
    if (!element.valid()) {
      element = module_.Add(comp, Opcode::kGetTupleElement, tuple->tuple()[a.index], {&of, 1},
                            InternAttributes(context_, a));
    }
    *id = element;
  }
  return true;
}

// opcode '('; constants and parameters are read completely.
bool OperandParser::BeginNestedOp(CompId comp, const Shape* shape, size_t operands, InstrId* out) {
  if (nested_ops_.size() >= kMaxNesting) {
    return lex_.Fail(lex_.at(), "E014", "Operands are nested too deeply",
                     absl::StrCat("at most ", kMaxNesting, " levels"));
  }
  if (nested_scratch_ == nullptr) nested_scratch_ = std::make_unique<Scratch>();
  Scratch* s = nested_scratch_.get();
  s->Reset();
  s->start = lex_.at();
  s->proto.shape = shape;
  if (!ParseOpcode(s)) return false;
  if (GetOpcodeInfo(s->opcode).attrs == AttrKind::kAsync) {
    return lex_.Fail(s->opcode_at, "E020", "An async op cannot stand in an operand",
                     "an instruction of its own");
  }
  const OpcodeAttrs& attrs = AttrsOf(s->opcode);
  for (int a = 0; a < kNumAttrs; ++a) {
    if (!attrs.required.Has(static_cast<Attr>(a))) continue;
    return lex_.Fail(s->opcode_at, "E006", "An attribute is missing",
                     absl::StrCat(AttrText(static_cast<Attr>(a)), "= on ", OpcodeText(s->opcode)),
                     "", "give the operand an instruction of its own");
  }
  if (s->opcode == Opcode::kParameter || s->opcode == Opcode::kConstant) {
    return ParseParenthesized(comp, s) && maker_.Make(comp, s, out);
  }
  if (!lex_.Expect('(')) return false;
  nested_ops_.push_back({s->opcode, s->opcode_at, shape, operands});
  return true;
}

// After the nested op's ')'.
bool OperandParser::EndNestedOp(CompId comp, Scratch* outer, InstrId* out) {
  const NestedOp op = nested_ops_.back();
  nested_ops_.pop_back();
  Scratch* s = nested_scratch_.get();
  s->Reset();
  s->opcode = op.opcode;
  s->opcode_at = op.opcode_at;
  s->proto.shape = op.shape;
  s->operands.assign(outer->operands.begin() + op.first_operand, outer->operands.end());
  outer->operands.resize(op.first_operand);
  return maker_.Make(comp, s, out);
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
