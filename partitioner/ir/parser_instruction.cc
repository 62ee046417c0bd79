// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "partitioner/ir/parser_internal.h"
#include "partitioner/ir/shape_inference.h"

namespace shardcall::hlo_text {

// [ROOT] name = [shape] opcode(operands) {, attribute}
bool Parser::ParseInstruction(CompId comp) {
  Scratch* s = scratch_.get();
  s->Reset();
  lex_.Skip();
  const char* root_at = lex_.at();
  const bool is_root = *root_at == 'R' && lex_.TryWord("ROOT");
  if (is_root && module_.comp(comp).root.valid()) {
    return lex_.Fail(root_at, "E009", "A second ROOT in this computation", "one ROOT");
  }
  Opcode opcode;
  int wrapped;
  if (!ParseNameAndShape(comp, s) || !ParseOpcode(s, &opcode, &wrapped) ||
      !ParseParenthesized(comp, s, opcode)) {
    return false;
  }
  const Attributes* attrs = nullptr;
  if (HasTrait(opcode, kAsyncForm) && GetOpcodeInfo(opcode).attrs == AttrKind::kAsync) {
    OpcodeAttrs allowed = AttrsOf(opcode);
    Opcode attributes_of = opcode;
    if (wrapped < kNumOpcodes && opcode == Opcode::kAsyncStart) {
      attributes_of = static_cast<Opcode>(wrapped);
      allowed = AttrsOf(attributes_of);
      allowed.allowed.Add(Attr::kAsyncExecutionThread);
      allowed.allowed.Add(Attr::kOutputToOperandAliasing);
    }
    if (!ParseAttributes(comp, s, allowed, attributes_of) ||
        !BuildAsync(s, opcode, wrapped, &attrs)) {
      return false;
    }
  } else if (!ParseAttributes(comp, s, AttrsOf(opcode), opcode)) {
    return false;
  }
  InstrId id;
  if (!FinishInstruction(comp, s, opcode, attrs, &id)) return false;
  if (is_root) module_.SetRoot(comp, id);
  return true;
}

bool Parser::ParseNameAndShape(CompId comp, Scratch* s) {
  lex_.Skip();
  s->start = lex_.at();
  absl::string_view name;
  if (single_) {  // `name =` may be missing
    const char* start = lex_.at();
    const bool named = (*start == '%' || Is(*start, kIdentStart)) &&
                       lex_.Name("an instruction", &name) && lex_.Peek() == '=';
    if (!named) {
      lex_.set_at(start);
      return ParseShape(&s->proto.shape);
    }
  } else if (!lex_.Name("an instruction or '}'", &name)) {
    return false;
  }
  if (names_.Find(comp, name).valid()) {
    return lex_.Fail(s->start, "E009", "An instruction is defined twice", "",
                     lex_.TokenAt(s->start), "give each instruction a name of its own");
  }
  s->proto.name = name;
  if (!lex_.Expect('=')) return false;
  lex_.Skip();
  // A shape starts with '(' or with a type and '['; else it was left out.
  const char* p = lex_.at();
  while (Is(*p, kIdent)) ++p;
  const bool has_shape = *p == '[' || p == lex_.at() || (p - lex_.at() == 1 && *lex_.at() == 'b');
  return !has_shape || ParseShape(&s->proto.shape);
}

bool Parser::ParseOpcode(Scratch* s, Opcode* opcode, int* wrapped) {
  *wrapped = kNumOpcodes;
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
  // Ops with pairs of their own have those only.
  if (sugar && OpcodeFromText(base, &inner) && !HasTrait(inner, kAsyncForm) &&
      inner != Opcode::kAllGather && inner != Opcode::kAllReduce &&
      inner != Opcode::kCollectivePermute && inner != Opcode::kCopy && inner != Opcode::kSend &&
      inner != Opcode::kRecv && inner != Opcode::kParameter && inner != Opcode::kConstant) {
    *wrapped = static_cast<int>(inner);
    return true;
  }
  std::vector<absl::string_view> names;
  for (int i = 0; i < kNumOpcodes; ++i) names.push_back(OpcodeText(static_cast<Opcode>(i)));
  return lex_.Fail(s->opcode_at, "E004", "Unknown opcode", "an HLO opcode",
                   lex_.TokenAt(s->opcode_at), DidYouMean(text, names));
}

bool Parser::ParseParenthesized(CompId comp, Scratch* s, Opcode opcode) {
  if (!lex_.Expect('(')) return false;
  if (opcode == Opcode::kParameter) return ParseParameterNumber(comp, s) && lex_.Expect(')');
  if (opcode == Opcode::kConstant) {
    if (s->proto.shape == nullptr) {
      return lex_.Fail(s->opcode_at, "E015", "A constant needs its shape",
                       "a shape before the opcode");
    }
    return ParseLiteral(s->proto.shape, &s->literal) && lex_.Expect(')');
  }
  if (!lex_.TryChar(')')) {
    do {
      if (!ParseOperand(comp, s)) return false;
    } while (lex_.TryChar(','));
    if (!lex_.TryChar(')')) return lex_.FailExpected("',' or ')'");
  }
  return true;
}

bool Parser::ParseParameterNumber(CompId comp, Scratch* s) {
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

// [shape] name ['#' index], or [shape] opcode(operands)
bool Parser::ParseOperand(CompId comp, Scratch* s) {
  lex_.Skip();
  const char* at = lex_.at();
  const Shape* shape = nullptr;
  if (*at != '%') {
    const char* p = at;
    while (Is(*p, kIdent)) ++p;
    if (*p == '[' || *at == '(' || (p - at == 1 && *at == 'b' && *p == '(')) {
      if (!ParseShape(&shape)) return false;
      lex_.Skip();
      at = lex_.at();
      p = at;
      while (Is(*p, kIdent)) ++p;
    }
    if (single_ && (*at == ',' || *at == ')')) {  // a shape alone is a parameter
      if (shape == nullptr) return lex_.FailExpected("an operand with its shape");
      ParameterAttrs a;
      a.number = static_cast<int64_t>(module_.comp(comp).parameters.size());
      s->operands.push_back(module_.Add(comp, Opcode::kParameter, shape, {},
                                        InternAttributes(context_, a)));
      return true;
    }
    while (Is(*p, kBlank)) ++p;
    if (*p == '(' && *at != '%') {
      InstrId id;
      if (!ParseNestedOp(comp, shape, &id)) return false;
      s->operands.push_back(id);
      return true;
    }
  }
  absl::string_view name;
  if (!lex_.Name("an operand", &name)) return false;
  InstrId id;
  if (single_ && shape != nullptr && !names_.Find(comp, name).valid()) {
    ParameterAttrs a;
    a.number = static_cast<int64_t>(module_.comp(comp).parameters.size());
    id = module_.Add(comp, Opcode::kParameter, shape, {}, InternAttributes(context_, a));
    module_.mutable_instr(id).name = name;
    names_.Insert(id);
  } else if (!LookUp(comp, name, at, &id)) {
    return false;
  }
  if (shape != nullptr && shape->bare() != module_.instr(id).shape->bare()) {
    return lex_.Fail(at, "E010", "An operand's shape is not that of its instruction",
                     module_.instr(id).shape->ToString(false), shape->ToString(false));
  }
  while (*lex_.at() == '#') {  // an element of a tuple
    lex_.set_at(lex_.at() + 1);
    TupleIndexAttrs a;
    if (!lex_.NonNegative(&a.index)) return false;
    const Shape* tuple = module_.instr(id).shape;
    if (!tuple->IsTuple() || a.index >= static_cast<int64_t>(tuple->tuple().size())) {
      return lex_.Fail(at, "E010", "There is no such tuple element",
                       absl::StrCat("an index into ", tuple->ToString(false)),
                       absl::StrCat(a.index));
    }
    const InstrId of = id;
    id = module_.Add(comp, Opcode::kGetTupleElement, tuple->tuple()[a.index], {&of, 1},
                     InternAttributes(context_, a));
  }
  s->operands.push_back(id);
  return true;
}

bool Parser::ParseNestedOp(CompId comp, const Shape* shape, InstrId* out) {
  if (++nesting_ > kMaxNesting) {
    return lex_.Fail(lex_.at(), "E014", "Operands are nested too deeply",
                     absl::StrCat("at most ", kMaxNesting, " levels"));
  }
  auto s = std::make_unique<Scratch>();
  s->start = lex_.at();
  s->proto.shape = shape;
  Opcode opcode;
  int wrapped;
  if (!ParseOpcode(s.get(), &opcode, &wrapped)) return false;
  if (GetOpcodeInfo(opcode).attrs == AttrKind::kAsync) {
    return lex_.Fail(s->opcode_at, "E020", "An async op cannot stand in an operand",
                     "an instruction of its own");
  }
  // No attributes: this checks that none is required.
  const char* end = nullptr;
  if (!ParseParenthesized(comp, s.get(), opcode)) return false;
  end = lex_.at();
  const OpcodeAttrs& attrs = AttrsOf(opcode);
  for (int a = 0; a < kNumAttrs; ++a) {
    if (!attrs.required.Has(static_cast<Attr>(a))) continue;
    return lex_.Fail(s->opcode_at, "E006", "An attribute is missing",
                     absl::StrCat(AttrText(static_cast<Attr>(a)), "= on ", OpcodeText(opcode)),
                     "", "give the operand an instruction of its own");
  }
  lex_.set_at(end);
  --nesting_;
  return FinishInstruction(comp, s.get(), opcode, nullptr, out);
}

bool Parser::FinishInstruction(CompId comp, Scratch* s, Opcode opcode, const Attributes* attrs,
                               InstrId* out) {
  const int arity = GetOpcodeInfo(opcode).arity;
  if (arity >= 0 && s->operands.size() != static_cast<size_t>(arity)) {
    return lex_.Fail(s->opcode_at, "E012",
                     absl::StrCat("Wrong number of operands of ", OpcodeText(opcode)),
                     absl::StrCat(arity), absl::StrCat(s->operands.size()));
  }
  s->proto.opcode = opcode;
  s->proto.attrs = attrs;
  if (attrs == nullptr && !BuildAttributes(s, opcode, &s->proto.attrs)) return false;
  if (s->proto.shape == nullptr && !InferMissingShape(s, opcode)) return false;
  *out = module_.Add(comp, s->proto, s->operands);
  if (!s->proto.name.empty()) names_.Insert(*out);
  KeepRareAttributes(s, opcode, *out);
  return true;
}

void Parser::KeepRareAttributes(Scratch* s, Opcode opcode, InstrId id) {
  const bool accuracy = s->Has(Attr::kResultAccuracy) &&
                        GetOpcodeInfo(opcode).attrs != AttrKind::kResultAccuracy;
  if (s->controls.empty() && !accuracy && !s->Has(Attr::kStatistics) && !s->Has(Attr::kOrigin)) {
    return;
  }
  RareAttributes& rare = module_.mutable_rare(id);
  rare.control_predecessors = s->controls;
  if (s->Has(Attr::kStatistics)) rare.statistics = std::string((*s)[Attr::kStatistics].text);
  if (s->Has(Attr::kOrigin)) rare.origin = std::string((*s)[Attr::kOrigin].text);
  if (accuracy) rare.result_accuracy = std::string((*s)[Attr::kResultAccuracy].text);
}

bool Parser::InferMissingShape(Scratch* s, Opcode opcode) {
  absl::InlinedVector<const Shape*, 8> operands;
  for (InstrId id : s->operands) operands.push_back(module_.instr(id).shape);
  Diagnostic error;
  const Shape* shape = InferShapeOrNull(context_, module_, opcode, operands, s->proto.attrs,
                                        nullptr, &error);
  if (shape == nullptr) {
    return lex_.Fail(s->opcode_at, "E015",
                     absl::StrCat("The shape cannot be inferred (", error.message, ")"),
                     error.expected, error.found, "write the shape before the opcode");
  }
  s->proto.shape = context_.WithDefaultLayout(shape);
  return true;
}

bool Parser::LookUp(CompId comp, absl::string_view name, const char* at, InstrId* out) {
  *out = names_.Find(comp, name);
  if (out->valid()) return true;
  std::vector<absl::string_view> names;
  const auto& instructions = module_.comp(comp).instructions;
  if (instructions.size() < 100000) {
    for (InstrId id : instructions) names.push_back(module_.instr(id).name);
  }
  const std::string meant = DidYouMean(name, names);
  return lex_.Fail(at, "E008", "Unknown instruction", "one that stands before its use",
                   lex_.TokenAt(at),
                   meant.empty() ? "define the instruction before this one" : meant);
}

}  // namespace shardcall::hlo_text
