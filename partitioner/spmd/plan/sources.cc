// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/sources.h"

#include "absl/algorithm/container.h"
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
    const bool plain = absl::c_all_of(interior, [](int64_t n) { return n == 0; }) &&
                       module.instr(module.operand(operand, 1)).opcode == Opcode::kConstant;
    return plain ? module.operand(operand, 0) : InstrId();
  }
  return InstrId();
}

}  // namespace internal
}  // namespace shardcall
