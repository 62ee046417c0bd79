// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/tile_runs.h"

#include <algorithm>
#include <numeric>

namespace shardcall {
inline namespace internal {

bool CutAtTiles(absl::Span<const int64_t> reshape, absl::Span<const int64_t> perm,
                absl::Span<const int64_t> tile, std::vector<std::vector<Run>>* out) {
  std::vector<Run> runs;
  for (int64_t d : perm) {
    int64_t stride = 1;
    for (size_t j = d + 1; j < reshape.size(); ++j) stride *= reshape[j];
    runs.push_back({reshape[d], stride});
  }
  out->assign(tile.size(), {});
  for (size_t t = tile.size(); t-- > 0;) {
    int64_t left = tile[t];
    while (left > 1) {
      while (!runs.empty() && runs.back().size == 1) runs.pop_back();
      if (runs.empty()) return false;
      Run& minor = runs.back();
      const int64_t take = std::gcd(left, minor.size);
      if (take != std::min(left, minor.size)) return false;
      (*out)[t].insert((*out)[t].begin(), {take, minor.stride});
      left /= take;
      minor.size /= take;
      minor.stride *= take;
    }
  }
  return true;
}

DeviceOrder OrderOfRuns(absl::Span<const Run> runs) {
  std::vector<size_t> by_stride(runs.size());
  std::iota(by_stride.begin(), by_stride.end(), 0);
  std::sort(by_stride.begin(), by_stride.end(),
            [&](size_t a, size_t b) { return runs[a].stride > runs[b].stride; });
  std::vector<int64_t> reshape(runs.size()), perm(runs.size());
  for (size_t i = 0; i < by_stride.size(); ++i) {
    reshape[i] = runs[by_stride[i]].size;
    perm[by_stride[i]] = i;
  }
  return *DeviceOrder::Iota(reshape, perm);
}

TileRuns RunsOfTiles(const DeviceOrder& order, absl::Span<const int64_t> tile) {
  TileRuns out;
  if (order.is_iota() && CutAtTiles(order.reshape(), order.perm(), tile, &out.dims)) {
    out.order = DeviceOrder::Identity(order.num_devices());
    return out;
  }
  out.order = order;
  out.dims.assign(tile.size(), {});
  int64_t stride = 1;
  for (size_t t = tile.size(); t-- > 0;) {
    if (tile[t] > 1) out.dims[t].push_back({tile[t], stride});
    stride *= tile[t];
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
