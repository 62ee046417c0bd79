// SPDX-License-Identifier: Apache-2.0
// Meshes. A Mesh is what users name: axes with sizes over a device order. A
// BaseMesh is what the engine computes with: the common refinement of all
// meshes and tilings of a module over one device order. Its axes are in major
// to minor order of the position p in 0..N-1, and a device order maps p to the
// logical device id (HLO's partition id).
//
// An AxisRef names a part of a base axis: of axis k with size n it takes `size`
// coordinates after the `pre_size` major ones, so pre_size * size divides n.
// Its coordinate at position p is (p / stride) % size, with stride =
// axis stride * n / (pre_size * size). Example: base axes 4,2; {0, 1, 2} is the
// major half of the first (stride 4), {0, 2, 2} its minor half (stride 2).
#ifndef SHARDCALL_SHARDING_MESH_H_
#define SHARDCALL_SHARDING_MESH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Device ids and axis sizes stay below this.
inline constexpr int64_t kMaxDevices = (int64_t{1} << 31) - 1;

// Maps positions to logical device ids: the iota expression [reshape]T(perm),
// or an explicit list. Iota lists are always recognised, so a list here has no
// iota form; equal orders compare equal.
class DeviceOrder {
 public:
  static DeviceOrder Identity(int64_t n);
  // `perm` empty means no transposition. Canonicalised: size-1 dims dropped,
  // adjacent dims that stay together merged.
  static absl::StatusOr<DeviceOrder> Iota(absl::Span<const int64_t> reshape,
                                          absl::Span<const int64_t> perm);
  // A permutation of 0..n-1; recognised as iota where it is one (O(n)).
  static absl::StatusOr<DeviceOrder> List(std::vector<int64_t> ids);

  int64_t num_devices() const { return num_devices_; }
  bool is_iota() const { return list_ == nullptr; }
  bool is_identity() const { return is_iota() && perm_.size() <= 1; }
  absl::Span<const int64_t> reshape() const { return reshape_; }
  absl::Span<const int64_t> perm() const { return perm_; }
  absl::Span<const int64_t> list() const { return *list_; }

  int64_t DeviceAt(int64_t position) const;
  // O(1) for iota forms; O(n) to set up once for lists.
  int64_t PositionOf(int64_t device) const;

  friend bool operator==(const DeviceOrder& a, const DeviceOrder& b);

 private:
  int64_t num_devices_ = 1;
  std::vector<int64_t> reshape_, perm_;
  std::shared_ptr<const std::vector<int64_t>> list_, inverse_;
};

struct MeshAxis {
  std::string name;
  int64_t size;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

// A mesh as written: `mesh = #sdy.mesh<["data"=4, "model"=2]>`, with device ids
// where given. The maximal form (no axes, one device id) has `maximal_device`.
struct Mesh {
  std::string name;            // may be empty (V3 inline meshes)
  std::vector<MeshAxis> axes;  // major to minor
  DeviceOrder order = DeviceOrder::Identity(1);
  int64_t maximal_device = -1;

  int64_t num_devices() const { return order.num_devices(); }
  // Errors E160: a size < 1, a duplicate axis, ids that are no permutation.
  static absl::StatusOr<Mesh> Create(std::string name, std::vector<MeshAxis> axes);
};

struct AxisRef {
  uint16_t axis = 0;
  uint32_t pre_size = 1;
  uint32_t size = 1;
  friend bool operator==(const AxisRef&, const AxisRef&) = default;
  friend auto operator<=>(const AxisRef&, const AxisRef&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const AxisRef& a) {
    return H::combine(std::move(h), a.axis, a.pre_size, a.size);
  }
};
using AxisList = absl::InlinedVector<AxisRef, 4>;

class BaseMesh {
 public:
  // `sizes` major to minor, each > 1; their product is order.num_devices().
  BaseMesh(std::vector<int64_t> sizes, DeviceOrder order);

  int num_axes() const { return static_cast<int>(sizes_.size()); }
  int64_t axis_size(int axis) const { return sizes_[axis]; }
  int64_t num_devices() const { return order_.num_devices(); }
  const DeviceOrder& order() const { return order_; }

  AxisRef FullAxis(int axis) const {
    return {static_cast<uint16_t>(axis), 1, static_cast<uint32_t>(sizes_[axis])};
  }
  int64_t Stride(AxisRef a) const;
  // The coordinate of a position along `axes`, major to minor.
  int64_t Coordinate(absl::Span<const AxisRef> axes, int64_t position) const;

  // The refs that cover coordinates of stride `stride` and size `size`, major to minor. False if
  // such cuts do not divide the axes; `out` is then unspecified.
  bool FromStride(int64_t stride, int64_t size, AxisList* out) const;

  // Names for printing: user axes in order, each a list of base refs. Set by import; `names()` is
  // empty if the program names no axes.
  struct NamedAxis {
    std::string name;
    AxisList refs;  // major to minor
  };
  absl::Span<const NamedAxis> names() const { return names_; }
  const std::string& mesh_name() const { return mesh_name_; }
  void SetNames(std::string mesh_name, std::vector<NamedAxis> names);
  // "data", "data":(1)2, "x0:(1)2"-like for unnamed base axes.
  std::string AxisName(AxisRef a) const;

 private:
  std::vector<int64_t> sizes_, strides_;
  DeviceOrder order_;
  std::string mesh_name_;
  std::vector<NamedAxis> names_;
};

// Axis algebra, all O(number of axes).
inline int64_t AxesSize(absl::Span<const AxisRef> axes) {
  int64_t size = 1;
  for (const AxisRef& a : axes) size *= a.size;
  return size;
}
bool Overlaps(AxisRef a, AxisRef b);
bool Overlaps(absl::Span<const AxisRef> a, absl::Span<const AxisRef> b);
bool Contains(absl::Span<const AxisRef> set, AxisRef a);  // every part of a lies in set
// Merges neighbours that continue each other within one base axis.
AxisList Canonical(const BaseMesh& mesh, absl::Span<const AxisRef> axes);
// Longest common major part, splitting an axis where needed: (a) and
// (a:(1)2, b) have (a:(1)2).
AxisList CommonPrefix(const BaseMesh& mesh, absl::Span<const AxisRef> a,
                      absl::Span<const AxisRef> b);
bool IsPrefix(const BaseMesh& mesh, absl::Span<const AxisRef> prefix,
              absl::Span<const AxisRef> axes);
// axes without its leading `prefix`; requires IsPrefix.
AxisList RemovePrefix(const BaseMesh& mesh, absl::Span<const AxisRef> prefix,
                      absl::Span<const AxisRef> axes);
// Longest leading part of `axes` whose size divides `size`, splitting the last
// axis where needed.
AxisList PrefixOfSize(const BaseMesh& mesh, absl::Span<const AxisRef> axes, int64_t size);
// Parts of `axes`, in order, that do not overlap `used`.
AxisList Minus(const BaseMesh& mesh, absl::Span<const AxisRef> axes,
               absl::Span<const AxisRef> used);
// Every base axis part not in `used`, in mesh order.
AxisList Complement(const BaseMesh& mesh, absl::Span<const AxisRef> used);

// The devices in the order of the coordinates along `axes`, which must cover each device of the
// mesh once: as an iota expression, or as a list. AxesAsIota is false where the device order is a
// list, or where the cuts of `axes` do not divide its dimensions.
bool AxesAsIota(const BaseMesh& mesh, absl::Span<const AxisRef> axes, DeviceOrder* out);
std::vector<int64_t> AxesAsList(const BaseMesh& mesh, absl::Span<const AxisRef> axes);

// Groups of positions that differ only along `axes`, in the order of `axes`
// (major to minor); groups ordered by their smallest position's coordinates on
// the other axes. As an iota expression where the device order is iota:
// [groups, group_size]<=[reshape]T(perm); `perm` is empty without a transposition.
struct IotaGroups {
  int64_t num_groups = 1, group_size = 1;
  std::vector<int64_t> reshape, perm;
};
// False if the order is an explicit list, or the cuts do not divide it; GroupsAsLists then lists
// the groups.
bool GroupsAsIota(const BaseMesh& mesh, absl::Span<const AxisRef> axes, IotaGroups* out);
std::vector<std::vector<int64_t>> GroupsAsLists(const BaseMesh& mesh,
                                                absl::Span<const AxisRef> axes);

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_MESH_H_
