// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/monoid_table.h"

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/attributes_intern.h"
#include "shardcall/partitioner/ir/build/unique_names.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

CompId MonoidTable::Get(Opcode op, ElementType type) {
  SHARDCALL_CHECK(IsMonoid(op) && IsArrayType(type));
  CompId& slot = made_[MonoidIndex(op)][static_cast<int>(type)];
  if (slot.valid()) return slot;
  Context& context = module_->context();
  // Another computation of the module may have that name.
  const CompId comp =
      AddNamedComputation(absl::StrCat(OpcodeText(op), ".", ElementTypeName(type)), module_);
  const Shape* scalar = context.MakeScalar(type);
  InstrId parameters[2];
  for (int i = 0; i < 2; ++i) {
    ParameterAttrs attrs;
    attrs.number = i;
    parameters[i] =
        module_->Add(comp, Opcode::kParameter, scalar, {}, InternAttributes(context, attrs));
  }
  module_->SetRoot(comp, module_->Add(comp, op, scalar, parameters));
  slot = comp;
  return comp;
}

}  // namespace shardcall
