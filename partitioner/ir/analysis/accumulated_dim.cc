// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/accumulated_dim.h"

namespace shardcall {
inline namespace internal {

int AccumulatedDim(const Window& w, const Shape* in) {
  int found = -1;
  for (int d = 0; d < in->rank(); ++d) {
    const int64_t n = in->dim(d);
    if (w.stride[d] != 1 || w.lhs_dilate[d] != 1 || w.rhs_dilate[d] != 1) return -1;
    if (w.size[d] == 1 && w.pad_low[d] == 0 && w.pad_high[d] == 0) continue;
    const bool forward = w.pad_low[d] == n - 1 && w.pad_high[d] == 0;
    const bool backward = w.pad_low[d] == 0 && w.pad_high[d] == n - 1;
    if (found >= 0 || w.size[d] != n || !(forward || backward)) return -1;
    found = d;
  }
  return found;
}

}  // namespace internal
}  // namespace shardcall
