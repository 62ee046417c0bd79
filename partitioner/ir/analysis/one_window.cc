// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/one_window.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/affine_integers.h"
#include "shardcall/partitioner/ir/analysis/value_range.h"

namespace shardcall {
inline namespace internal {

bool HasOneWindow(const Shape& indices, int64_t index_vector_dim) {
  int64_t windows = 1;
  for (int d = 0; d < indices.rank(); ++d) {
    if (d != index_vector_dim) windows *= indices.dim(d);
  }
  return windows == 1;
}

StartLimits LimitsOfStarts(const Module& m, const Instruction& i) {
  StartLimits out;
  const auto operands = m.operands(i);
  const Shape& x = *m.instr(operands[0]).shape;
  if (HasTrait(i.opcode, kMapsElements)) {
    const bool update = i.opcode == Opcode::kDynamicUpdateSlice;
    const Shape& part = update ? *m.instr(operands[1]).shape : *i.shape;
    out.first = update ? 2 : 1;
    for (int d = 0; d < x.rank(); ++d) out.most.push_back(x.dim(d) - part.dim(d));
  } else if (i.opcode == Opcode::kGather) {
    const auto& attrs = i.as<GatherAttrs>();
    out.first = 1;
    for (int64_t d : attrs.start_index_map) {
      out.most.push_back(x.dim(static_cast<int>(d)) - attrs.slice_sizes[d]);
    }
  } else {
    const auto& attrs = i.as<ScatterAttrs>();
    out.first = static_cast<int>(operands.size() / 2);
    const auto sizes = ScatterWindow(m, i);
    for (int64_t d : attrs.scatter_dims_to_operand_dims) {
      out.most.push_back(x.dim(static_cast<int>(d)) - sizes[d]);
    }
  }
  return out;
}

std::optional<absl::InlinedVector<int64_t, 8>> ConstantStarts(const Module& m, InstrId id) {
  const StartLimits limits = LimitsOfStarts(m, m.instr(id));
  const auto operands = m.operands(id);
  if (operands.size() != limits.first + limits.most.size()) return std::nullopt;
  absl::InlinedVector<int64_t, 8> starts;
  for (size_t d = 0; d < limits.most.size(); ++d) {
    const std::optional<int64_t> start = NumberOf(m, operands[limits.first + d]);
    if (!start.has_value()) return std::nullopt;
    starts.push_back(std::clamp<int64_t>(*start, 0, limits.most[d]));
  }
  return starts;
}

absl::InlinedVector<int64_t, 8> ScatterWindow(const Module& m, const Instruction& i) {
  const auto& attrs = i.as<ScatterAttrs>();
  const auto operands = m.operands(i);
  const Shape& x = *m.instr(operands[0]).shape;
  const Shape& update = *m.instr(operands[operands.size() / 2 + 1]).shape;
  absl::InlinedVector<int64_t, 8> sizes;
  size_t window = 0;
  for (int d = 0; d < x.rank(); ++d) {
    const bool one = absl::c_linear_search(attrs.inserted_window_dims, d) ||
                     absl::c_linear_search(attrs.input_batching_dims, d);
    sizes.push_back(one ? 1 : update.dim(static_cast<int>(attrs.update_window_dims[window++])));
  }
  return sizes;
}

bool StartInRange(const Module& module, InstrId start, int64_t most) {
  const auto range = RangeOf(module, start);
  return range && range->low >= 0 && range->high <= most;
}

}  // namespace internal
}  // namespace shardcall
