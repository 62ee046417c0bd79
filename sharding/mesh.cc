// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/mesh.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/sharding/axis_names.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/text_cursor.h"

namespace shardcall {

absl::StatusOr<Mesh> Mesh::Create(std::string name, std::vector<MeshAxis> axes) {
  const std::string fix = "give each mesh axis a name of its own and a size of at least 1";
  int64_t n = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].size < 1) {
      return ToStatus({.code = "E160",
                       .message = absl::StrCat("axis \"", axes[i].name, "\" of mesh \"", name,
                                               "\" has no devices"),
                       .expected = "a size of at least 1",
                       .found = absl::StrCat(axes[i].size),
                       .fix = fix});
    }
    for (size_t j = 0; j < i; ++j) {
      if (axes[i].name != axes[j].name) continue;
      return ToStatus(
          {.code = "E160",
           .message = absl::StrCat("mesh \"", name, "\" names axis \"", axes[i].name, "\" twice"),
           .fix = fix});
    }
    if (__builtin_mul_overflow(n, axes[i].size, &n) || n > kMaxDevices) {
      return ToStatus({.code = "E160",
                       .message = absl::StrCat("mesh \"", name, "\" has too many devices"),
                       .expected = "fewer than 2^31",
                       .fix = "make the axes smaller"});
    }
  }
  Mesh out;
  out.name = std::move(name);
  out.axes = std::move(axes);
  out.order = DeviceOrder::Identity(n);
  return out;
}

BaseMesh::BaseMesh(std::vector<int64_t> sizes, DeviceOrder order)
    : sizes_(std::move(sizes)), strides_(sizes_.size()), order_(std::move(order)) {
  int64_t stride = 1;
  for (size_t i = sizes_.size(); i-- > 0;) {
    SHARDCALL_CHECK(sizes_[i] > 1);
    strides_[i] = stride;
    stride *= sizes_[i];
  }
  SHARDCALL_CHECK(stride == order_.num_devices());
}

int64_t BaseMesh::Stride(AxisRef a) const {
  return strides_[a.axis] * (sizes_[a.axis] / (static_cast<int64_t>(a.pre_size) * a.size));
}

int64_t BaseMesh::Coordinate(absl::Span<const AxisRef> axes, int64_t position) const {
  int64_t out = 0;
  for (const AxisRef& a : axes) out = out * a.size + position / Stride(a) % a.size;
  return out;
}

bool BaseMesh::FromStride(int64_t stride, int64_t size, AxisList* out) const {
  out->clear();
  if (stride < 1 || size < 1 || stride > num_devices() / size) return false;
  int64_t covered = 1;
  for (int k = 0; k < num_axes(); ++k) {
    const int64_t end = strides_[k] * sizes_[k];
    const int64_t low = std::max(stride, strides_[k]);
    const int64_t high = std::min(stride * size, end);
    if (low >= high) continue;
    if (high % low != 0 || low % strides_[k] != 0 || end % high != 0) return false;
    out->push_back({static_cast<uint16_t>(k), static_cast<uint32_t>(end / high),
                    static_cast<uint32_t>(high / low)});
    covered *= high / low;
  }
  return covered == size;
}

void BaseMesh::SetNames(std::string mesh_name, std::vector<NamedAxis> names) {
  mesh_name_ = std::move(mesh_name);
  names_ = std::move(names);
}

std::string BaseMesh::AxisName(AxisRef a) const {
  return AxisRefsText(NameAxes(*this, absl::MakeConstSpan(&a, 1)));
}

std::vector<NamedAxisRef> NameAxes(const BaseMesh& mesh, absl::Span<const AxisRef> axes) {
  // A piece of a base axis and its place in a named axis, or in the base axis itself where no
  // named axis covers it.
  struct Piece {
    int64_t begin, end;  // factors of the base axis
    int name;            // index in names(), or -1
    int64_t pre;         // within the named axis
  };
  struct Out {
    int name, axis;
    int64_t pre, size;
  };
  std::vector<Out> merged;
  std::vector<Piece> pieces;
  for (const AxisRef& a : axes) {
    const int64_t begin = a.pre_size, end = begin * a.size;
    pieces.clear();
    for (size_t k = 0; k < mesh.names().size(); ++k) {
      int64_t pre = 1;
      for (const AxisRef& r : mesh.names()[k].refs) {
        const int64_t r_begin = r.pre_size, r_end = r_begin * r.size;
        const int64_t low = std::max(begin, r_begin), high = std::min(end, r_end);
        if (r.axis == a.axis && low < high && high % low == 0 && low % r_begin == 0) {
          pieces.push_back({low, high, static_cast<int>(k), pre * (low / r_begin)});
        }
        pre *= r.size;
      }
    }
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& x, const Piece& y) { return x.begin < y.begin; });
    auto append = [&](int name, int64_t pre, int64_t size) {
      if (!merged.empty() && merged.back().name == name &&
          merged.back().axis == (name < 0 ? a.axis : -1) &&
          merged.back().pre * merged.back().size == pre) {
        merged.back().size *= size;
      } else {
        merged.push_back({name, name < 0 ? a.axis : -1, pre, size});
      }
    };
    int64_t at = begin;
    for (const Piece& p : pieces) {
      if (p.begin < at || p.begin % at != 0 || end % p.end != 0) continue;
      if (p.begin > at) append(-1, at, p.begin / at);
      append(p.name, p.pre, p.end / p.begin);
      at = p.end;
    }
    if (at < end) append(-1, at, end / at);
  }
  std::vector<NamedAxisRef> out;
  for (const Out& m : merged) {
    int64_t full = 1;
    NamedAxisRef ref;
    if (m.name < 0) {
      ref.name = absl::StrCat("x", m.axis);
      full = mesh.axis_size(m.axis);
    } else {
      ref.name = mesh.names()[m.name].name;
      full = AxesSize(mesh.names()[m.name].refs);
    }
    if (m.size != full) {
      ref.pre_size = m.pre;
      ref.size = m.size;
    }
    out.push_back(std::move(ref));
  }
  return out;
}

std::string AxisRefText(const NamedAxisRef& ref, char quote) {
  std::string name = QuotedText(ref.name, quote);
  if (ref.size == 0) return name;
  return absl::StrCat(name, ":(", ref.pre_size, ")", ref.size);
}

std::string AxisRefsText(absl::Span<const NamedAxisRef> refs, char quote) {
  return absl::StrJoin(refs, ", ", [quote](std::string* out, const NamedAxisRef& r) {
    absl::StrAppend(out, AxisRefText(r, quote));
  });
}

}  // namespace shardcall
