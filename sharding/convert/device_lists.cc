// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/convert/device_lists.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

std::vector<int64_t> SizesOf(const TileRuns& runs) {
  std::vector<int64_t> sizes;
  for (const std::vector<Run>& dim : runs.dims) {
    int64_t size = 1;
    for (const Run& r : dim) size *= r.size;
    sizes.push_back(size);
  }
  return sizes;
}

// In row-major order of the tiles.
std::vector<int64_t> DevicesOf(const TileRuns& runs) {
  std::vector<int64_t> positions = {0};
  for (const std::vector<Run>& dim : runs.dims) {
    for (const Run& r : dim) {
      std::vector<int64_t> next;
      next.reserve(positions.size() * r.size);
      for (int64_t p : positions) {
        for (int64_t k = 0; k < r.size; ++k) next.push_back(p + k * r.stride);
      }
      positions = std::move(next);
    }
  }
  for (int64_t& p : positions) p = runs.order.DeviceAt(p);
  return positions;
}

bool IsList(const DeviceTiling& t) { return !t.runs.order.is_iota(); }

DeviceOrder ListOf(std::vector<int64_t> devices) {
  absl::StatusOr<DeviceOrder> order = DeviceOrder::List(std::move(devices));
  SHARDCALL_CHECK(order.ok());
  return *std::move(order);
}

}  // namespace

std::optional<TileRuns> RunsOver(const DeviceOrder& order, const DeviceTiling& tiling) {
  if (order == tiling.runs.order) return tiling.runs;
  const int64_t n = order.num_devices();
  const bool may_fit = IsList(tiling) || (tiling.copies > 1 && !order.is_iota());
  if (!may_fit || tiling.runs.order.num_devices() != n) return std::nullopt;
  std::vector<int64_t> positions = DevicesOf(tiling.runs);
  if (static_cast<int64_t>(positions.size()) != n) return std::nullopt;
  for (int64_t& p : positions) p = order.PositionOf(p);
  for (int64_t k = 0; tiling.copies > 1 && k < n; k += tiling.copies) {
    std::sort(positions.begin() + k, positions.begin() + k + tiling.copies);
  }
  TileRuns out = RunsOfTiles(ListOf(std::move(positions)), SizesOf(tiling.runs));
  if (!out.order.is_identity()) return std::nullopt;
  out.order = order;
  return out;
}

LooseOrder OrderOf(const DeviceTiling& tiling) {
  return {tiling.runs.order, IsList(tiling) ? tiling.copies : 1};
}

std::optional<LooseOrder> RefinedBy(const DeviceTiling& tiling, const LooseOrder& order) {
  if (order.loose == 1) return std::nullopt;
  const int64_t n = order.order.num_devices();
  const std::vector<int64_t> tiled = DevicesOf(tiling.runs);
  if (static_cast<int64_t>(tiled.size()) != n) return std::nullopt;
  std::vector<int64_t> tile(n), devices(n);  // by device, by position
  for (int64_t k = 0; k < n; ++k) tile[tiled[k]] = k / tiling.copies;
  for (int64_t p = 0; p < n; ++p) devices[p] = order.order.DeviceAt(p);
  int64_t loose = 0;
  for (int64_t block = 0; block < n; block += order.loose) {
    const auto begin = devices.begin() + block, end = begin + order.loose;
    std::sort(begin, end,
              [&](int64_t a, int64_t b) { return std::tie(tile[a], a) < std::tie(tile[b], b); });
    for (auto at = begin; at != end;) {
      const auto next = std::find_if(at, end, [&](int64_t d) { return tile[d] != tile[*at]; });
      if (loose == 0) loose = next - at;
      if (next - at != loose) return std::nullopt;
      at = next;
    }
  }
  if (loose == order.loose) return std::nullopt;
  return LooseOrder{ListOf(std::move(devices)), loose};
}

void SortLists(std::vector<DeviceTiling>* tilings) {
  if (absl::c_none_of(*tilings, IsList)) return;
  const bool first = absl::c_all_of(*tilings, [](const DeviceTiling& t) {
    return IsList(t) || t.copies > 1 ||
           absl::c_all_of(t.runs.dims, [](const auto& dim) { return dim.empty(); });
  });
  if (first) std::stable_partition(tilings->begin(), tilings->end(), IsList);
  std::vector<size_t> places;
  std::vector<DeviceTiling> lists;
  for (size_t k = 0; k < tilings->size(); ++k) {
    if (!IsList((*tilings)[k])) continue;
    places.push_back(k);
    lists.push_back(std::move((*tilings)[k]));
  }
  absl::c_stable_sort(lists, [](const DeviceTiling& a, const DeviceTiling& b) {
    if (a.copies != b.copies) return a.copies < b.copies;
    const auto x = a.runs.order.list(), y = b.runs.order.list();
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
  });
  for (size_t k = 0; k < places.size(); ++k) (*tilings)[places[k]] = std::move(lists[k]);
}

}  // namespace internal
}  // namespace shardcall
