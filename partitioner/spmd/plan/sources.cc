// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/plan/sources.h"

#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/value_range.h"
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

absl::InlinedVector<int64_t, 4> ConstantStarts(const Module& module, InstrId id) {
  absl::InlinedVector<int64_t, 4> starts;
  if (module.instr(id).opcode != Opcode::kDynamicUpdateSlice) return starts;
  const auto operands = module.operands(id);
  const Shape &x = *module.instr(operands[0]).shape, &update = *module.instr(operands[1]).shape;
  if (operands.size() != 2 + static_cast<size_t>(x.rank())) return {};
  for (int d = 0; d < x.rank(); ++d) {
    const std::optional<ValueRange> start = RangeOf(module, operands[2 + d]);
    if (!start.has_value() || start->low != start->high) return {};
    starts.push_back(std::clamp<int64_t>(start->low, 0, x.dim(d) - update.dim(d)));
  }
  return starts;
}

}  // namespace internal
}  // namespace shardcall
