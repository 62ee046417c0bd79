// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"
#include "shardcall/partitioner/ir/text/parser_internal.h"

namespace shardcall::inline internal::hlo_text {

bool IsReservedName(absl::string_view name) {
  if (name.size() >= 2 && name[0] == '_' && name[1] == '_') {
    return !absl::StartsWith(name, "__xla_");
  }
  if (name.size() > 13 || name.find('.') != absl::string_view::npos) return false;
  const ElementType type = ElementTypeFromName(name);
  return type != ElementType::kInvalid && type != ElementType::kTuple &&
         type != ElementType::kBuffer;
}

// [ROOT] name = [shape] opcode(operands)
bool Parser::BeginInstruction(CompId comp, Scratch* s) {
  s->Reset();
  lex_.Skip();
  const char* root_at = lex_.at();
  s->is_root = *root_at == 'R' && lex_.TryWord("ROOT");
  if (s->is_root && module_.comp(comp).root.valid()) {
    return lex_.Fail(root_at, "E009", "A second ROOT in this computation", "one ROOT");
  }
  return ParseNameAndShape(comp, s) && ParseOpcode(s) && ParseParenthesized(comp, s);
}

bool Parser::EndInstruction(CompId comp, Scratch* s) {
  const Attributes* attrs = nullptr;
  if (GetOpcodeInfo(s->opcode).attrs == AttrKind::kAsync && !BuildAsync(s, &attrs)) return false;
  InstrId id;
  if (!FinishInstruction(comp, s, attrs, &id)) return false;
  if (s->is_root) module_.SetRoot(comp, id);
  return true;
}

bool Parser::ParseNameAndShape(CompId comp, Scratch* s) {
  lex_.Skip();
  s->start = lex_.at();
  absl::string_view name;
  if (single_) {  // `name =` may be missing
    const char* start = lex_.at();
    bool named;
    if (*start == '%') {
      named = lex_.Name("an instruction", &name);
    } else {  // may be a type
      name = lex_.TryIdentifier();
      named = !name.empty();
    }
    named = named && lex_.Peek() == '=';
    if (!named) {
      lex_.set_at(start);
      return shapes_.Parse(&s->proto.shape);
    }
  } else if (!lex_.Name("an instruction or '}'", &name)) {
    return false;
  }
  if (names_.Find(comp, name).valid()) {
    return lex_.Fail(s->start, "E009", "An instruction is defined twice", "",
                     lex_.TokenAt(s->start), "give each instruction a name of its own");
  }
  if (IsReservedName(name)) {
    return lex_.Fail(s->start, "E009", "An instruction has a reserved name",
                     "a name that is no type and does not start with '__'", lex_.TokenAt(s->start),
                     "rename the instruction");
  }
  s->proto.name = name;
  if (!lex_.Expect('=')) return false;
  lex_.Skip();
  // A shape starts with '(' or with a type and '['; otherwise it was left out.
  const char* p = lex_.at();
  while (Is(*p, kIdent)) ++p;
  const bool has_shape = *p == '[' || p == lex_.at() || (p - lex_.at() == 1 && *lex_.at() == 'b');
  return !has_shape || shapes_.Parse(&s->proto.shape);
}

bool Parser::ParseOpcode(Scratch* s) {
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

bool Parser::ParseParenthesized(CompId comp, Scratch* s) {
  if (!lex_.Expect('(')) return false;
  if (s->opcode == Opcode::kParameter) return ParseParameterNumber(comp, s) && lex_.Expect(')');
  if (s->opcode != Opcode::kConstant) return ParseOperands(comp, s);
  if (s->proto.shape == nullptr) {
    return lex_.Fail(s->opcode_at, "E015", "A constant needs its shape",
                     "a shape before the opcode");
  }
  return literals_.Parse(s->proto.shape, &s->literal) && lex_.Expect(')');
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

bool Parser::FinishInstruction(CompId comp, Scratch* s, const Attributes* attrs, InstrId* out) {
  const Opcode opcode = s->opcode;
  const int arity = GetOpcodeInfo(opcode).arity;
  if (arity >= 0 && s->operands.size() != static_cast<size_t>(arity)) {
    return lex_.Fail(s->opcode_at, "E012",
                     absl::StrCat("Wrong number of operands of ", OpcodeText(opcode)),
                     absl::StrCat(arity), absl::StrCat(s->operands.size()));
  }
  s->proto.opcode = opcode;
  s->proto.attrs = attrs;
  if (attrs == nullptr && !records_.Build(s, opcode, &s->proto.attrs)) return false;
  if (s->proto.shape == nullptr && !InferMissingShape(s)) return false;
  *out = module_.Add(comp, s->proto, s->operands);
  if (!s->proto.name.empty()) names_.Insert(*out);
  KeepRareAttributes(s, *out);
  return true;
}

void Parser::KeepRareAttributes(Scratch* s, InstrId id) {
  const bool statistics = s->Has(Attr::kStatistics) && !(*s)[Attr::kStatistics].text.empty();
  if (s->controls.empty() && !statistics && !s->Has(Attr::kOrigin)) return;
  RareAttributes& rare = module_.mutable_rare(id);
  rare.control_predecessors = s->controls;
  if (statistics) rare.statistics = std::string((*s)[Attr::kStatistics].text);
  if (s->Has(Attr::kOrigin)) rare.origin = std::string((*s)[Attr::kOrigin].text);
}

bool Parser::InferMissingShape(Scratch* s) {
  absl::InlinedVector<const Shape*, 8> operands;
  for (InstrId id : s->operands) operands.push_back(module_.instr(id).shape);
  if (s->opcode == Opcode::kCustomCall) return InferCallShape(s, operands);
  Diagnostic error;
  const Shape* shape =
      InferShapeOrNull(context_, module_, s->opcode, operands, s->proto.attrs, nullptr, &error);
  if (shape == nullptr) {
    return lex_.Fail(s->opcode_at, "E015",
                     absl::StrCat("The shape cannot be inferred (", error.message, ")"),
                     error.expected, error.found, "write the shape before the opcode");
  }
  s->proto.shape = context_.WithDefaultLayout(shape);
  return true;
}

bool Parser::InferCallShape(Scratch* s, absl::Span<const Shape* const> operands) {
  const absl::string_view target = static_cast<const CustomCallAttrs*>(s->proto.attrs)->target;
  if (targets_ == nullptr) {
    return lex_.Fail(s->opcode_at, "E015",
                     absl::StrCat("The shape of a call of \"", target, "\" is not written"),
                     "a shape before the opcode", lex_.TokenAt(s->opcode_at),
                     "write the shape, or read the text with targets that know it");
  }
  const absl::StatusOr<const Shape*> shape =
      targets_->InferShape({&context_, target, s->proto.backend_config, operands});
  if (!shape.ok()) return lex_.FailWith(s->opcode_at, shape.status());
  s->proto.shape = *shape;
  return true;
}

}  // namespace shardcall::inline internal::hlo_text
