// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/simplify/placed_windows.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "shardcall/partitioner/ir/analysis/affine_integers.h"
#include "shardcall/partitioner/ir/analysis/one_window.h"
#include "shardcall/partitioner/ir/monoid.h"

namespace shardcall {
inline namespace internal {
namespace {

using Numbers = std::vector<int64_t>;

}  // namespace

std::optional<CallExpansion> ReadPlacedSlice(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  if (m.instr(m.operand(id, 0)).shape->IsDynamic()) return std::nullopt;
  const auto constants = ConstantStarts(m, id);
  if (!constants.has_value()) return std::nullopt;
  const Numbers starts(constants->begin(), constants->end());
  Numbers limits = starts;
  for (size_t d = 0; d < limits.size(); ++d) limits[d] += i.shape->dim(static_cast<int>(d));
  return CallExpansion{{i.shape}, [=](GraphBuilder& b, absl::Span<const InstrId> given) {
                         return std::vector<InstrId>{b.Slice(given[0], starts, limits)};
                       }};
}

std::optional<CallExpansion> ReadSliceOfRow(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  const auto& attrs = i.as<SliceAttrs>();
  Numbers starts(attrs.starts.begin(), attrs.starts.end());
  Numbers limits(attrs.limits.begin(), attrs.limits.end());
  Numbers strides(attrs.strides.begin(), attrs.strides.end());
  bool any = false;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (strides[d] == 1 || i.shape->dim(static_cast<int>(d)) != 1) continue;
    strides[d] = 1;
    limits[d] = starts[d] + 1;
    any = true;
  }
  if (!any || m.instr(m.operand(id, 0)).shape->IsDynamic()) return std::nullopt;
  return CallExpansion{{i.shape}, [=](GraphBuilder& b, absl::Span<const InstrId> given) {
                         return std::vector<InstrId>{b.Slice(given[0], starts, limits, strides)};
                       }};
}

std::optional<CallExpansion> ReadUpdateOfAll(const Module& m, InstrId id) {
  const Shape& all = *m.instr(id).shape;
  const Shape& update = *m.instr(m.operand(id, 1)).shape;
  if (all.IsDynamic() || update.IsDynamic() || update.dims() != all.dims()) return std::nullopt;
  const auto update_of = [](GraphBuilder&, absl::Span<const InstrId> given) {
    return std::vector<InstrId>{given[1]};
  };
  return CallExpansion{{&all}, update_of, /*leaves_out=*/true};
}

std::optional<CallExpansion> ReadPlacedScatter(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  const auto operands = m.operands(i);
  if (operands.size() != 3 || i.shape->IsDynamic()) return std::nullopt;
  const auto& attrs = i.as<ScatterAttrs>();
  const Shape &x = *m.instr(operands[0]).shape, &update = *m.instr(operands[2]).shape;
  if (!HasOneWindow(*m.instr(operands[1]).shape, attrs.index_vector_dim) || update.IsDynamic() ||
      update.num_elements() == 0) {
    return std::nullopt;
  }
  const bool replaces = ReplacesElements(m, attrs.to_apply);
  Opcode op = Opcode::kAdd;
  if (!replaces && !RecognizeMonoid(m, attrs.to_apply, &op)) return std::nullopt;
  Numbers index;
  const StartLimits limits = LimitsOfStarts(m, i);
  if (!AppendConstants(m, operands[1], &index) || index.size() != limits.most.size()) {
    return std::nullopt;
  }
  Numbers starts(x.rank(), 0);
  for (size_t c = 0; c < index.size(); ++c) {
    // A window that does not fit is left out.
    if (index[c] < 0 || index[c] > limits.most[c]) return std::nullopt;
    starts[attrs.scatter_dims_to_operand_dims[c]] = index[c];
  }
  const auto sizes = ScatterWindow(m, i);
  const Numbers window(sizes.begin(), sizes.end());
  const auto make = [=](GraphBuilder& b, absl::Span<const InstrId> given) {
    // Dimensions of size 1 apart, the update has the window's dimensions in their order.
    InstrId part = b.shape(given[2])->dims() == absl::MakeConstSpan(window)
                       ? given[2]
                       : b.Reshape(given[2], window);
    if (!replaces) {
      Numbers ends = starts;
      for (size_t d = 0; d < ends.size(); ++d) ends[d] += window[d];
      part = b.Binary(op, b.Slice(given[0], starts, ends), part);
    }
    std::vector<InstrId> at;
    for (int64_t s : starts) at.push_back(b.ConstantInt(ElementType::kS32, s));
    return std::vector<InstrId>{b.DynamicUpdateSlice(given[0], part, at)};
  };
  return CallExpansion{{i.shape}, make};
}

}  // namespace internal
}  // namespace shardcall
