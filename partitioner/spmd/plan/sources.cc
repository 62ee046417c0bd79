// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/sources.h"

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/one_window.h"
#include "shardcall/partitioner/ir/attributes.h"

namespace shardcall {
inline namespace internal {

int64_t Source::shift(int d) const {
  return opcode == Opcode::kSlice ? static_cast<const SliceAttrs*>(attrs)->starts[d]
                                  : -static_cast<const PadAttrs*>(attrs)->low[d];
}

InstrId SourceOf(const Module& module, InstrId operand) {
  const Instruction& i = module.instr(operand);
  if (i.opcode == Opcode::kSlice) {
    const auto& strides = i.as<SliceAttrs>().strides;
    const bool plain = absl::c_all_of(strides, [](int64_t s) { return s == 1; });
    return plain ? module.operand(operand, 0) : InstrId();
  }
  if (i.opcode == Opcode::kPad) {
    const auto& interior = i.as<PadAttrs>().interior;
    // JAX converts a constant 0 to the type.
    InstrId value = module.operand(operand, 1);
    while (module.instr(value).opcode == Opcode::kConvert) value = module.operand(value, 0);
    const bool plain = absl::c_all_of(interior, [](int64_t n) { return n == 0; }) &&
                       module.instr(value).opcode == Opcode::kConstant;
    return plain ? module.operand(operand, 0) : InstrId();
  }
  return InstrId();
}

absl::InlinedVector<int64_t, 8> PlaceOfUpdate(const Module& module, InstrId id) {
  if (module.instr(id).opcode != Opcode::kDynamicUpdateSlice) return {};
  return ConstantStarts(module, id).value_or(absl::InlinedVector<int64_t, 8>());
}

}  // namespace internal
}  // namespace shardcall
