// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/parse/instruction_maker.h"

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

bool InstructionMaker::Make(CompId comp, Scratch* s, InstrId* out) {
  const Opcode opcode = s->opcode;
  const OpcodeInfo& info = GetOpcodeInfo(opcode);
  const int arity = info.arity;
  if (arity >= 0 && s->operands.size() != static_cast<size_t>(arity)) {
    return lex_.Fail(s->opcode_at, "E012",
                     absl::StrCat("Wrong number of operands of ", OpcodeText(opcode)),
                     absl::StrCat(arity), absl::StrCat(s->operands.size()));
  }
  s->proto.opcode = opcode;
  if (info.attrs == AttrKind::kAsync ? !BuildAsync(s, &s->proto.attrs)
                                     : !records_.Build(s, opcode, &s->proto.attrs)) {
    return false;
  }
  if (s->proto.shape == nullptr && !InferShape(s)) return false;
  *out = module_.Add(comp, s->proto, s->operands);
  if (!s->proto.name.empty()) definitions_.Add(*out);
  KeepRareAttributes(s, *out);
  return true;
}

void InstructionMaker::KeepRareAttributes(Scratch* s, InstrId id) {
  const bool statistics = s->Has(Attr::kStatistics) && !(*s)[Attr::kStatistics].text.empty();
  if (s->controls.empty() && !statistics && !s->Has(Attr::kOrigin)) return;
  RareAttributes& rare = module_.mutable_rare(id);
  rare.control_predecessors = s->controls;
  if (statistics) rare.statistics = std::string((*s)[Attr::kStatistics].text);
  if (s->Has(Attr::kOrigin)) rare.origin = std::string((*s)[Attr::kOrigin].text);
}

bool InstructionMaker::InferShape(Scratch* s) {
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

bool InstructionMaker::InferCallShape(Scratch* s, absl::Span<const Shape* const> operands) {
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

InstrId InstructionMaker::MakeParameter(CompId comp, const Shape* shape, absl::string_view name) {
  ParameterAttrs a;
  a.number = static_cast<int64_t>(module_.comp(comp).parameters.size());
  const InstrId id =
      module_.Add(comp, Opcode::kParameter, shape, {}, InternAttributes(context_, a));
  if (name.empty()) return id;
  module_.mutable_instr(id).name = name;
  definitions_.Add(id);
  return id;
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
