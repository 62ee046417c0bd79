// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/strategies/lines/fft_parts.h"

#include <vector>

#include "absl/algorithm/container.h"

namespace shardcall {
inline namespace internal {

InstrId FftOfDims(GraphBuilder& b, InstrId x, const FftAttrs& whole, absl::Span<const int> dims) {
  if (dims.empty()) return x;
  const int rank = b.shape(x)->rank();
  // An fft op transforms the last dimensions.
  std::vector<int64_t> order, back(rank);
  for (int d = 0; d < rank; ++d) {
    if (!absl::c_linear_search(dims, d)) order.push_back(d);
  }
  order.insert(order.end(), dims.begin(), dims.end());
  for (int k = 0; k < rank; ++k) back[order[k]] = k;
  const bool in_order = absl::c_is_sorted(order);
  if (!in_order) x = b.Transpose(x, order);

  FftAttrs attrs;
  const bool with_last = dims.back() == rank - 1;
  if (with_last || whole.type == FftType::kFft || whole.type == FftType::kIfft) {
    attrs.type = whole.type;
  } else {
    attrs.type = whole.type == FftType::kRfft ? FftType::kFft : FftType::kIfft;
  }
  std::vector<int64_t> length;
  const int skipped = rank - static_cast<int>(whole.length.size());
  for (int d : dims) length.push_back(whole.length[d - skipped]);
  attrs.length = length;
  x = b.Add(Opcode::kFft, {x}, InternAttributes(b.context(), attrs));
  return in_order ? x : b.Transpose(x, back);
}

}  // namespace internal
}  // namespace shardcall
