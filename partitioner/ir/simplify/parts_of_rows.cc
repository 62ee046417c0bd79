// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/analysis/one_window.h"
#include "shardcall/partitioner/ir/simplify/placed_windows.h"

namespace shardcall {
inline namespace internal {
namespace {

// The sizes of what windows of these sizes take of x, if they begin at 0 in every dimension that
// the indices do not place; empty if that is all of x.
std::vector<int64_t> PartOf(const Shape& x, absl::Span<const int64_t> window,
                            absl::Span<const int64_t> placed, absl::Span<const int64_t> batching) {
  std::vector<int64_t> part(x.dims().begin(), x.dims().end());
  for (int d = 0; d < x.rank(); ++d) {
    if (absl::c_linear_search(placed, d) || absl::c_linear_search(batching, d)) continue;
    part[d] = window[d];
  }
  if (x.IsDynamic() || absl::MakeConstSpan(part) == x.dims()) part.clear();
  return part;
}

}  // namespace

std::optional<CallExpansion> ReadGatherOfParts(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  const auto& attrs = i.as<GatherAttrs>();
  const std::vector<int64_t> part = PartOf(*m.instr(m.operand(id, 0)).shape, attrs.slice_sizes,
                                           attrs.start_index_map, attrs.operand_batching_dims);
  if (part.empty()) return std::nullopt;
  const auto make = [attrs = i.attrs, shape = i.shape, part](GraphBuilder& b,
                                                             absl::Span<const InstrId> given) {
    const InstrId cut = b.Slice(given[0], std::vector<int64_t>(part.size(), 0), part);
    return std::vector<InstrId>{b.Add(Opcode::kGather, {cut, given[1]}, attrs, shape)};
  };
  return CallExpansion{{i.shape}, make};
}

std::optional<CallExpansion> ReadScatterOfParts(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  if (m.operands(i).size() != 3) return std::nullopt;
  const auto& attrs = i.as<ScatterAttrs>();
  const std::vector<int64_t> part = PartOf(
      *i.shape, ScatterWindow(m, i), attrs.scatter_dims_to_operand_dims, attrs.input_batching_dims);
  if (part.empty()) return std::nullopt;
  const auto make = [attrs = i.attrs, part](GraphBuilder& b, absl::Span<const InstrId> given) {
    const std::vector<int64_t> zeros(part.size(), 0);
    const InstrId cut = b.Slice(given[0], zeros, part);
    const InstrId changed = b.Add(Opcode::kScatter, {cut, given[1], given[2]}, attrs);
    const std::vector<InstrId> at(part.size(), b.Zero(ElementType::kS32));
    return std::vector<InstrId>{b.DynamicUpdateSlice(given[0], changed, at)};
  };
  return CallExpansion{{i.shape}, make};
}

}  // namespace internal
}  // namespace shardcall
