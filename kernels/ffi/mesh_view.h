// SPDX-License-Identifier: Apache-2.0
// A mesh as seen by one device, for handlers, which get the mesh of their program.
#ifndef SHARDCALL_KERNELS_FFI_MESH_VIEW_H_
#define SHARDCALL_KERNELS_FFI_MESH_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall {
inline namespace internal {

struct MeshAxisView {
  std::string name;
  int64_t size;
  int64_t coordinate;  // of the device
};
// The axes that the user named, major to minor; without any, those of the base mesh, named x0, x1,
// ..
std::vector<MeshAxisView> MeshAxesOf(const BaseMesh& mesh, int64_t device);

// The devices that differ from `device` only along that axis, including itself, in the axis's
// order. In mesh ["data"=4, "model"=2] device 3 has 2, 3 along "model". Empty if there is no such
// axis.
std::vector<int> DevicesAlong(const BaseMesh& mesh, int64_t device, absl::string_view axis);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_MESH_VIEW_H_
