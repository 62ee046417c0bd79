// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/mesh_view.h"

#include "shardcall/sharding/convert/convert.h"

namespace shardcall {
inline namespace internal {

std::vector<MeshAxisView> MeshAxesOf(const BaseMesh& mesh, int64_t device) {
  const int64_t position = mesh.order().PositionOf(device);
  std::vector<MeshAxisView> views;
  for (const BaseMesh::NamedAxis& axis : AxesByName(mesh)) {
    views.push_back({axis.name, AxesSize(axis.refs), mesh.Coordinate(axis.refs, position)});
  }
  return views;
}

std::vector<int> DevicesAlong(const BaseMesh& mesh, int64_t device, absl::string_view name) {
  const int64_t position = mesh.order().PositionOf(device);
  std::vector<int> devices;
  for (const BaseMesh::NamedAxis& axis : AxesByName(mesh)) {
    if (axis.name != name) continue;
    for (int64_t c = 0; c < AxesSize(axis.refs); ++c) {
      int64_t at = position, rest = c;
      for (auto ref = axis.refs.rbegin(); ref != axis.refs.rend(); ++ref) {
        const int64_t stride = mesh.Stride(*ref), own = at / stride % ref->size;
        at += (rest % ref->size - own) * stride;
        rest /= ref->size;
      }
      devices.push_back(static_cast<int>(mesh.order().DeviceAt(at)));
    }
    break;
  }
  return devices;
}

}  // namespace internal
}  // namespace shardcall
