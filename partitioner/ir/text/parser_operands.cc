// SPDX-License-Identifier: Apache-2.0
// Operands in parentheses: names, and ops without attributes, which nest. The operands of all open
// ops are in one stack, the Scratch's operands; a nested op takes its own from the end.
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/text/parser_internal.h"

namespace shardcall::inline internal::hlo_text {

bool Parser::ParseOperands(CompId comp, Scratch* s) {
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
bool Parser::ParseOperand(CompId comp, Scratch* s, InstrId* out) {
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
      return AddOperandParameter(comp, shape, {}, out);
    }
    while (Is(*p, kBlank)) ++p;
    if (*p == '(' && *at != '%') return BeginNestedOp(comp, shape, s->operands.size(), out);
  }
  absl::string_view name;
  if (!lex_.Name("an operand", &name)) return false;
  if (single_ && shape != nullptr && !names_.Find(comp, name).valid()) {
    AddOperandParameter(comp, shape, name, out);
  } else if (!LookUp(comp, name, at, out)) {
    return false;
  }
  const Shape* found = module_.instr(*out).shape;
  if (shape != nullptr && shape->bare() != found->bare()) {
    return lex_.Fail(at, "E010", "An operand's shape is not that of its instruction",
                     found->ToString(false), shape->ToString(false));
  }
  return *lex_.at() != '#' || ParseTupleIndices(comp, at, out);
}

bool Parser::AddOperandParameter(CompId comp, const Shape* shape, absl::string_view name,
                                 InstrId* out) {
  ParameterAttrs a;
  a.number = static_cast<int64_t>(module_.comp(comp).parameters.size());
  *out = module_.Add(comp, Opcode::kParameter, shape, {}, InternAttributes(context_, a));
  if (name.empty()) return true;
  module_.mutable_instr(*out).name = name;
  names_.Insert(*out);
  return true;
}

// `#1#0`: elements of a tuple
bool Parser::ParseTupleIndices(CompId comp, const char* at, InstrId* id) {
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
    *id = module_.Add(comp, Opcode::kGetTupleElement, tuple->tuple()[a.index], {&of, 1},
                      InternAttributes(context_, a));
  }
  return true;
}

// opcode '('; constants and parameters are read completely.
bool Parser::BeginNestedOp(CompId comp, const Shape* shape, size_t operands, InstrId* out) {
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
    return ParseParenthesized(comp, s) && FinishInstruction(comp, s, nullptr, out);
  }
  if (!lex_.Expect('(')) return false;
  nested_ops_.push_back({s->opcode, s->opcode_at, shape, operands});
  return true;
}

// After the nested op's ')'.
bool Parser::EndNestedOp(CompId comp, Scratch* outer, InstrId* out) {
  const NestedOp op = nested_ops_.back();
  nested_ops_.pop_back();
  Scratch* s = nested_scratch_.get();
  s->Reset();
  s->opcode = op.opcode;
  s->opcode_at = op.opcode_at;
  s->proto.shape = op.shape;
  s->operands.assign(outer->operands.begin() + op.first_operand, outer->operands.end());
  outer->operands.resize(op.first_operand);
  return FinishInstruction(comp, s, nullptr, out);
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

}  // namespace shardcall::inline internal::hlo_text
