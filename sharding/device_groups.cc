// SPDX-License-Identifier: Apache-2.0
// Groups of devices that differ only along some axes.
#include <algorithm>
#include <utility>

#include "shardcall/sharding/mesh.h"
#include "shardcall/sharding/tile_runs.h"

namespace shardcall {
namespace {

// A run of positions with stride `position_stride`.
struct Segment {
  int64_t size, position_stride, device_stride = 0;
};

// The order's dimensions, major to minor in positions.
std::vector<Segment> OrderSegments(const DeviceOrder& order) {
  std::vector<Segment> out;
  int64_t position_stride = order.num_devices();
  for (int64_t d : order.perm()) {
    position_stride /= order.reshape()[d];
    int64_t device_stride = 1;
    for (size_t j = d + 1; j < order.reshape().size(); ++j) device_stride *= order.reshape()[j];
    out.push_back({order.reshape()[d], position_stride, device_stride});
  }
  return out;
}

// Cuts the positions of stride `stride` and size `size` at the dimensions of the device order and
// appends the pieces, major to minor. False if the cuts do not divide.
bool AppendPieces(const std::vector<Segment>& order, int64_t stride, int64_t size,
                  std::vector<Segment>* out) {
  int64_t covered = 1;
  for (const Segment& s : order) {
    const int64_t low = std::max(stride, s.position_stride);
    const int64_t high = std::min(stride * size, s.position_stride * s.size);
    if (low >= high) continue;
    if (high % low != 0 || low % s.position_stride != 0 || s.position_stride * s.size % high != 0) {
      return false;
    }
    out->push_back({high / low, low, low / s.position_stride * s.device_stride});
    covered *= high / low;
  }
  return covered == size;
}

// The positions along a list of axes, in the order of the axes' coordinates.
std::vector<int64_t> Positions(const BaseMesh& mesh, absl::Span<const AxisRef> axes) {
  std::vector<int64_t> out = {0};
  for (const AxisRef& a : axes) {
    const int64_t stride = mesh.Stride(a);
    std::vector<int64_t> next;
    next.reserve(out.size() * a.size);
    for (int64_t p : out) {
      for (int64_t c = 0; c < a.size; ++c) next.push_back(p + c * stride);
    }
    out = std::move(next);
  }
  return out;
}

}  // namespace

bool AxesAsIota(const BaseMesh& mesh, absl::Span<const AxisRef> axes, DeviceOrder* out) {
  if (!mesh.order().is_iota() || AxesSize(axes) != mesh.num_devices()) return false;
  const std::vector<Segment> order = OrderSegments(mesh.order());
  std::vector<Segment> pieces;
  for (const AxisRef& a : axes) {
    if (a.size > 1 && !AppendPieces(order, mesh.Stride(a), a.size, &pieces)) return false;
  }
  std::vector<Run> runs;
  for (const Segment& p : pieces) runs.push_back({p.size, p.device_stride});
  *out = OrderOfRuns(runs);
  return true;
}

std::vector<int64_t> AxesAsList(const BaseMesh& mesh, absl::Span<const AxisRef> axes) {
  std::vector<int64_t> out = Positions(mesh, axes);
  for (int64_t& p : out) p = mesh.order().DeviceAt(p);
  return out;
}

bool GroupsAsIota(const BaseMesh& mesh, absl::Span<const AxisRef> axes, IotaGroups* out) {
  AxisList all = Complement(mesh, axes);
  all.insert(all.end(), axes.begin(), axes.end());
  DeviceOrder order = DeviceOrder::Identity(1);
  if (!AxesAsIota(mesh, all, &order)) return false;
  out->group_size = AxesSize(axes);
  out->num_groups = mesh.num_devices() / out->group_size;
  out->reshape.assign(order.reshape().begin(), order.reshape().end());
  out->perm.clear();
  if (!order.is_identity()) out->perm.assign(order.perm().begin(), order.perm().end());
  return true;
}

std::vector<std::vector<int64_t>> GroupsAsLists(const BaseMesh& mesh,
                                                absl::Span<const AxisRef> axes) {
  const AxisList rest = Complement(mesh, axes);
  const std::vector<int64_t> members = Positions(mesh, axes);
  std::vector<std::vector<int64_t>> groups;
  for (int64_t base : Positions(mesh, rest)) {
    std::vector<int64_t>& group = groups.emplace_back();
    group.reserve(members.size());
    for (int64_t m : members) group.push_back(mesh.order().DeviceAt(base + m));
  }
  return groups;
}

}  // namespace shardcall
