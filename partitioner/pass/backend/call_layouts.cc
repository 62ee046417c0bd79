// SPDX-License-Identifier: Apache-2.0
//   before:  y = f32[6,6]{0,1} custom-call(f32[6,6]{1,0} x),
//                operand_layout_constraints={f32[6,6]{0,1}}
//   after:   z = f32[6,6]{0,1} custom-call(f32[6,6]{0,1} copy(x)),  y = f32[6,6]{1,0} copy(z)
#include <functional>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/pass/backend/backend_passes.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
inline namespace internal {
namespace {

bool IsRowMajor(const Shape* s) {
  return !s->has_layout() || absl::c_is_sorted(s->minor_to_major(), std::greater<>());
}

bool ConcernsCallLayouts(const Instruction& i) {
  if (i.opcode != Opcode::kCustomCall) return false;
  bool plain = true;
  for (const Shape* s : i.as<CustomCallAttrs>().operand_layouts)
    plain &= !s->IsArray() || IsRowMajor(s);
  for (int k = 0; k < i.shape->num_leaves(); ++k) {
    const Shape* leaf = i.shape->leaf(k);
    plain &= !leaf->IsArray() || IsRowMajor(leaf);
  }
  return !plain;
}

InstrId CopyTo(const Shape* shape, InstrId x, GraphBuilder& b) {
  return b.Add(Opcode::kCopy, {x}, nullptr, shape);
}

InstrId RowMajor(InstrId x, GraphBuilder& b) {
  const Shape* const shape = b.shape(x);
  if (shape->IsArray()) {
    return IsRowMajor(shape) ? x : CopyTo(b.context().WithDefaultLayout(shape->bare()), x, b);
  }
  if (!shape->IsTuple()) return x;
  std::vector<InstrId> parts;
  for (size_t k = 0; k < shape->tuple().size(); ++k) {
    parts.push_back(RowMajor(b.GetTupleElement(x, static_cast<int64_t>(k)), b));
  }
  return b.Tuple(parts);
}

void MakeCallLayouts(const Module& m, InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
  const CustomCallAttrs& attrs = m.instr(id).as<CustomCallAttrs>();
  auto operands = cloner->OperandsOf(id);
  for (size_t k = 0; k < operands.size() && k < attrs.operand_layouts.size(); ++k) {
    const Shape* const wanted = attrs.operand_layouts[k];
    if (wanted->IsArray() && !IsRowMajor(wanted)) operands[k] = CopyTo(wanted, operands[k], b);
  }
  const InstrId now = cloner->Add(id, cloner->CopyOf(id), operands, b.computation());
  cloner->CopyRare(id, now);
  cloner->Set(id, RowMajor(now, b));
}

}  // namespace

PassResult CopyToCallLayouts(const Module& m) {
  return RewriteInstructions(
      m, [&](InstrId id) { return ConcernsCallLayouts(m.instr(id)); },
      [&](InstrId id, GraphBuilder& b, ModuleCloner* cloner) {
        MakeCallLayouts(m, id, b, cloner);
      });
}

}  // namespace internal
}  // namespace shardcall
