// SPDX-License-Identifier: Apache-2.0
// Small meshes, all their axis parts, and what they mean spelled out device by
// device: the slow truth that the algebra is held against.
#ifndef SHARDCALL_TESTS_SHARDING_MESH_CASES_H_
#define SHARDCALL_TESTS_SHARDING_MESH_CASES_H_

#include <vector>

#include "shardcall/sharding/mesh.h"

namespace shardcall {

inline std::vector<std::vector<int64_t>> SmallMeshSizes() {
  return {{}, {2}, {4}, {6}, {8}, {12}, {2, 4}, {4, 2}, {2, 2, 2}, {3, 4}, {6, 4}, {2, 6, 2}};
}

// Every part of every axis, full axes included.
inline std::vector<AxisRef> AllParts(const BaseMesh& mesh) {
  std::vector<AxisRef> out;
  for (int k = 0; k < mesh.num_axes(); ++k) {
    const int64_t n = mesh.axis_size(k);
    for (int64_t pre = 1; pre <= n; ++pre) {
      for (int64_t size = 2; pre * size <= n; ++size) {
        if (n % (pre * size) == 0) {
          out.push_back(
              {static_cast<uint16_t>(k), static_cast<uint32_t>(pre), static_cast<uint32_t>(size)});
        }
      }
    }
  }
  return out;
}

// Every list of at most `length` parts that do not overlap.
inline std::vector<AxisList> AllLists(const BaseMesh& mesh, size_t length) {
  const std::vector<AxisRef> parts = AllParts(mesh);
  std::vector<AxisList> out = {AxisList{}};
  for (size_t begin = 0, l = 0; l < length; ++l) {
    const size_t end = out.size();
    for (; begin < end; ++begin) {
      for (const AxisRef& p : parts) {
        if (Overlaps(out[begin], absl::MakeConstSpan(&p, 1))) continue;
        AxisList next = out[begin];
        next.push_back(p);
        out.push_back(next);
      }
    }
  }
  return out;
}

// The coordinate along `axes` of every position.
inline std::vector<int64_t> Coordinates(const BaseMesh& mesh, absl::Span<const AxisRef> axes) {
  std::vector<int64_t> out(mesh.num_devices());
  for (int64_t p = 0; p < mesh.num_devices(); ++p) {
    // From the definition: the coordinate on a base axis, then the part of it.
    int64_t c = 0;
    for (const AxisRef& a : axes) {
      int64_t stride = 1;
      for (int k = mesh.num_axes() - 1; k > a.axis; --k) stride *= mesh.axis_size(k);
      const int64_t on_axis = p / stride % mesh.axis_size(a.axis);
      const int64_t behind = mesh.axis_size(a.axis) / (int64_t{a.pre_size} * a.size);
      c = c * a.size + on_axis / behind % a.size;
    }
    out[p] = c;
  }
  return out;
}

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_SHARDING_MESH_CASES_H_
