// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/derived/call_parts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace derived_calls {

absl::Status Cannot(absl::string_view what, absl::string_view target, std::string why,
                    std::string fix) {
  return ToStatus({.code = "E118",
                   .message = absl::StrCat("there is no ", what, " of \"", target, "\": ", why),
                   .fix = std::move(fix)},
                  absl::StatusCode::kFailedPrecondition);
}

absl::Status Misfit(absl::string_view what, absl::string_view target, std::string message,
                    std::string expected, std::string found, std::string fix) {
  return ToStatus({.code = "E123",
                   .message = absl::StrCat("the ", what, " of \"", target, "\" is given ", message),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = std::move(fix)});
}

absl::StatusOr<Ids> Leaves(CheckedBuilder& b, InstrId value) {
  Ids out;
  const Shape* shape = b.shape(value);
  if (!shape->IsTuple()) return Ids{value};
  for (size_t k = 0; k < shape->tuple().size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId leaf,
                               b.GetTupleElement(value, static_cast<int64_t>(k)));
    out.push_back(leaf);
  }
  return out;
}

const Shape* ResultShape(Context& context, const Shapes& leaves) {
  return leaves.size() == 1 ? leaves[0] : context.MakeTuple(leaves);
}

absl::StatusOr<CallParts> PartsOf(const Module& m, InstrId call, absl::string_view what) {
  CallParts p;
  if (!call.valid() || call.value >= static_cast<uint32_t>(m.num_instructions()) ||
      m.instr(call).opcode != Opcode::kCustomCall) {
    return ToStatus({.code = "E123",
                     .message = absl::StrCat("a ", what, " is asked for of what is no custom call"),
                     .expected = "a custom call of this module",
                     .found = call.valid() ? absl::StrCat("instruction ", call.value) : "none",
                     .fix = "Pass a custom call"});
  }
  p.instr = &m.instr(call);
  p.attrs = &p.instr->as<CustomCallAttrs>();
  for (InstrId o : m.operands(call)) p.operands.push_back(m.instr(o).shape);
  const Shape* shape = p.instr->shape;
  if (shape->IsTuple()) {
    p.results.assign(shape->tuple().begin(), shape->tuple().end());
  } else {
    p.results.push_back(shape);
  }
  bool arrays = p.attrs->called_computations.empty();
  for (const Shapes* list : {&p.operands, &p.results}) {
    for (const Shape* s : *list) arrays = arrays && s->IsArray();
  }
  if (!arrays || p.attrs->has_side_effect) {
    return Cannot(what, p.attrs->target, "it has tuples, tokens, computations or side effects",
                  "Write that call by hand");
  }
  return p;
}

bool Knows(const CheckedBuilder& b, InstrId id) {
  return id.valid() && id.value < static_cast<uint32_t>(b.module().num_instructions());
}

CustomCallAttrs PlainAttrs(const CustomCallAttrs& call, absl::string_view target) {
  CustomCallAttrs attrs;
  attrs.target = target;
  attrs.api_version = call.api_version;
  return attrs;
}

}  // namespace derived_calls
}  // namespace internal
}  // namespace shardcall
