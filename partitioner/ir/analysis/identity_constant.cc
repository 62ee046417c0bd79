// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/identity_constant.h"

#include <cstring>

#include "shardcall/partitioner/ir/monoid.h"

namespace shardcall {
inline namespace internal {

const Literal* ScalarLiteral(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  if (i.opcode != Opcode::kConstant || !i.shape->IsArray() || i.shape->rank() != 0) return nullptr;
  const Literal* literal = i.as<ConstantAttrs>().literal;
  return literal->elided ? nullptr : literal;
}

bool IsIdentityConstant(const Module& m, InstrId id, Opcode monoid) {
  const Literal* literal = ScalarLiteral(m, id);
  if (literal == nullptr) return false;
  const ElementType type = m.instr(id).shape->element_type();
  for (ZeroSign zero : {ZeroSign::kPositive, ZeroSign::kExact}) {
    const Literal* identity = IdentityLiteral(m.context(), monoid, type, zero);
    if (identity != nullptr && identity->data.size() == literal->data.size() &&
        std::memcmp(identity->data.data(), literal->data.data(), literal->data.size()) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace internal
}  // namespace shardcall
