// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/reshard/permute_sources.h"

namespace shardcall {
inline namespace internal {
namespace {

// Numbers the positions of a mesh by shard, then by manual coordinates, then by replica.
struct Numbering {
  const BaseMesh* mesh;
  AxisList shard, manual, copy;

  explicit Numbering(const Sharding& s) : mesh(s.mesh()) {
    for (int d = 0; d < s.rank(); ++d) {
      shard.insert(shard.end(), s.dim(d).begin(), s.dim(d).end());
    }
    manual.assign(s.manual().begin(), s.manual().end());
    copy = Complement(*mesh, s.used());
  }
  int64_t At(int64_t position) const {
    int64_t n = mesh->Coordinate(shard, position);
    n = n * AxesSize(manual) + mesh->Coordinate(manual, position);
    return n * AxesSize(copy) + mesh->Coordinate(copy, position);
  }
};

}  // namespace

std::vector<int64_t> PermuteSources(const Sharding& before, const Sharding& after) {
  const Numbering from(before), to(after);
  const int64_t n = to.mesh->num_devices();
  std::vector<int64_t> device_with(n), sources(n);
  for (int64_t p = 0; p < n; ++p) device_with[from.At(p)] = from.mesh->order().DeviceAt(p);
  for (int64_t p = 0; p < n; ++p) sources[p] = device_with[to.At(p)];
  return sources;
}

double PermutedShare(const Sharding& before, const Sharding& after) {
  constexpr int64_t kMost = 4096;  // a plan is not to take time by the number of devices
  if (after.mesh()->num_devices() > kMost) return 1;
  const std::vector<int64_t> sources = PermuteSources(before, after);
  const DeviceOrder& order = after.mesh()->order();
  int64_t moved = 0;
  for (size_t p = 0; p < sources.size(); ++p) {
    moved += sources[p] != order.DeviceAt(static_cast<int64_t>(p));
  }
  return static_cast<double>(moved) / static_cast<double>(sources.size());
}

}  // namespace internal
}  // namespace shardcall
