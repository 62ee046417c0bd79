// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/import/remesh.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/import/annotations.h"
#include "shardcall/partitioner/import/import_internal.h"
#include "shardcall/partitioner/ir/moved_from.h"
#include "shardcall/partitioner/ir/opcode.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert/mesh_set.h"
#include "shardcall/sharding/convert/subset_tiling.h"
#include "shardcall/sharding/rule/sdy_text.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr absl::string_view kFirstAxis = "x0";

absl::Status Refused(absl::string_view message, absl::string_view where, absl::string_view fix,
                     absl::string_view expected = "", absl::string_view found = "") {
  return ToStatus({.code = "E053",
                   .message = std::string(message),
                   .where = std::string(where),
                   .expected = std::string(expected),
                   .found = std::string(found),
                   .fix = std::string(fix)});
}

class Remesher {
 public:
  Remesher(absl::Span<const AxisSize> sizes, Module* module) : sizes_(sizes), m_(*module) {}

  absl::Status Run() {
    SHARDCALL_RETURN_IF_ERROR(CheckSizes());
    SHARDCALL_RETURN_IF_ERROR(CheckNoDevices());
    DropBaseMeshes();
    const FrontendAttributes* frontend = m_.header.frontend;
    const absl::string_view dictionary =
        frontend == nullptr ? absl::string_view() : frontend->Find(kSdyMeshes);
    if (!dictionary.empty()) {
      SHARDCALL_RETURN_IF_ERROR(RewriteDictionary(dictionary));
    } else {
      SHARDCALL_RETURN_IF_ERROR(RewriteShardings());
    }
    for (size_t k = 0; k < sizes_.size(); ++k) {
      if (used_[k]) continue;
      const bool named = names_ != std::vector<std::string>{std::string(kFirstAxis)};
      return Refused(absl::StrCat("no mesh has an axis \"", sizes_[k].axis, "\""), "",
                     named
                         ? "name an axis of the program; propagate --named shows them"
                         : "resize x0, the first axis of the tilings; others have a size of their "
                           "own only where the program names its axes",
                     absl::StrJoin(names_, ", "), sizes_[k].axis);
    }
    m_.header.num_partitions = devices_;
    m_.header.has_num_partitions = true;
    return absl::OkStatus();
  }

 private:
  absl::Status CheckSizes() {
    used_.assign(sizes_.size(), false);
    for (size_t k = 0; k < sizes_.size(); ++k) {
      if (sizes_[k].size < 1 || sizes_[k].size > kMaxDevices) {
        return Refused("a mesh axis cannot have that size", sizes_[k].axis,
                       "give a number of devices", "1 or more", absl::StrCat(sizes_[k].size));
      }
      for (size_t j = 0; j < k; ++j) {
        if (sizes_[j].axis != sizes_[k].axis) continue;
        return Refused("an axis is given two sizes", sizes_[k].axis, "give one");
      }
    }
    return absl::OkStatus();
  }

  // Refuses ops that are written for a fixed number of devices.
  absl::Status CheckNoDevices() const {
    for (int n = 0; n < m_.num_instructions(); ++n) {
      const Instruction& i = m_.instr(InstrId(n));
      const bool manual = import_internal::IsManualEntry(i);
      if (manual || HasTrait(i.opcode, kCollectiveOp) || i.opcode == Opcode::kPartitionId) {
        return Refused(manual ? "a manual region is written for its own mesh"
                              : absl::StrCat(OpcodeText(i.opcode), " is written for its own mesh"),
                       absl::StrCat("%", i.name), "dump the program for the smaller mesh");
      }
    }
    return absl::OkStatus();
  }

  // Drops the base meshes that an exported module was made with.
  void DropBaseMeshes() {
    m_.header.frontend = import_internal::WithoutAttributes(
        m_.context(), m_.header.frontend,
        [](absl::string_view key) { return key == import_internal::kBaseMeshes; });
  }

  // Sets the new sizes of the axes that `mesh` has. Maximal meshes stay.
  absl::Status Resize(Mesh* mesh) {
    if (mesh->maximal_device >= 0 || mesh->axes.empty()) return absl::OkStatus();
    if (!mesh->order.is_identity()) {
      return Refused("the mesh spells out its device ids", absl::StrCat("@", mesh->name),
                     "dump the program for the smaller mesh");
    }
    std::vector<MeshAxis> axes = mesh->axes;
    for (MeshAxis& axis : axes) {
      if (std::find(names_.begin(), names_.end(), axis.name) == names_.end()) {
        names_.push_back(axis.name);
      }
      for (size_t k = 0; k < sizes_.size(); ++k) {
        if (sizes_[k].axis != axis.name) continue;
        axis.size = sizes_[k].size;
        used_[k] = true;
      }
    }
    SHARDCALL_ASSIGN_OR_RETURN(*mesh, Mesh::Create(mesh->name, std::move(axes)));
    devices_ = mesh->num_devices();
    return absl::OkStatus();
  }

  absl::Status RewriteDictionary(absl::string_view dictionary) {
    SHARDCALL_ASSIGN_OR_RETURN(std::vector<Mesh> meshes, ParseSdyMeshes(dictionary));
    for (Mesh& mesh : meshes) SHARDCALL_RETURN_IF_ERROR(Resize(&mesh));
    const std::string text = SdyMeshesText(meshes);
    std::vector<std::pair<absl::string_view, absl::string_view>> entries(
        m_.header.frontend->entries.begin(), m_.header.frontend->entries.end());
    for (auto& [key, value] : entries) {
      if (key == kSdyMeshes) value = text;
    }
    m_.header.frontend = InternFrontendAttributes(m_.context(), entries);
    return absl::OkStatus();
  }

  absl::Status RewriteShardings() {
    SHARDCALL_RETURN_IF_ERROR(FindFirstAxis());
    absl::flat_hash_map<const HloSharding*, const HloSharding*> done;
    for (int n = 0; n < m_.num_instructions(); ++n) {
      Instruction& i = m_.mutable_instr(InstrId(n));
      if (i.sharding == nullptr) continue;
      const HloSharding*& now = done[i.sharding];
      if (now == nullptr) {
        HloSharding copy = *i.sharding;
        SHARDCALL_RETURN_IF_ERROR(Rewrite(absl::StrCat("%", i.name), &copy));
        for (HloSharding& entry : copy.tuple) {
          SHARDCALL_RETURN_IF_ERROR(Rewrite(absl::StrCat("%", i.name), &entry));
        }
        now = InternHloSharding(m_.context(), std::move(copy));
      }
      i.sharding = now;
    }
    return absl::OkStatus();
  }

  // The first axis of the common refinement of all tilings.
  absl::Status FindFirstAxis() {
    MeshCollector collector;
    for (int n = 0; n < m_.num_instructions(); ++n) {
      const Instruction& i = m_.instr(InstrId(n));
      if (i.sharding != nullptr) SHARDCALL_RETURN_IF_ERROR(collector.AddTiling(*i.sharding));
    }
    // In a separate context, since the program's meshes change.
    Context scratch;
    const int64_t given = m_.header.has_num_partitions ? m_.header.num_partitions : 0;
    SHARDCALL_ASSIGN_OR_RETURN(const MeshSet meshes, collector.Finish(scratch, given));
    if (meshes.main()->num_axes() > 0) first_ = meshes.main()->axis_size(0);
    devices_ = present_devices_ = meshes.num_devices();
    if (!meshes.main()->names().empty()) return absl::OkStatus();
    names_.emplace_back(kFirstAxis);
    for (size_t k = 0; k < sizes_.size(); ++k) {
      if (sizes_[k].axis != kFirstAxis) continue;
      used_[k] = true;
      size_ = sizes_[k].size;
      devices_ = devices_ / first_ * size_;
    }
    return absl::OkStatus();
  }

  absl::Status Rewrite(absl::string_view where, HloSharding* s) {
    if (s->kind == HloSharding::Kind::kNamed && s->named.mesh != nullptr) {
      Mesh mesh = *s->named.mesh;
      SHARDCALL_RETURN_IF_ERROR(Resize(&mesh));
      s->named.mesh = std::make_shared<const Mesh>(std::move(mesh));
      return absl::OkStatus();
    }
    if (s->kind != HloSharding::Kind::kTiled || size_ == 0) return absl::OkStatus();
    if (!s->is_list() && NamesSomeDevices(*s, present_devices_)) {
      SHARDCALL_ASSIGN_OR_RETURN(*s, OverAllDevices(*s, present_devices_));
    }
    if (s->is_list()) {
      return Refused("a device list has no axes to resize", where,
                     "dump the program for the smaller mesh", "devices=[..]<=[..]", s->Print());
    }
    // The first axis covers the positions of the permuted dims from `before` on.
    int64_t before = 1;
    for (int64_t dim : s->perm) {
      if (dim == 0) break;
      before *= s->reshape[dim];
    }
    int64_t above = 1;  // product of the tile dims so far
    for (int64_t& tile : s->tile) {
      const bool holds = before % above == 0 && (above * tile) % (before * first_) == 0;
      above *= tile;
      if (!holds || s->reshape[0] % first_ != 0) continue;
      tile = tile / first_ * size_;
      s->reshape[0] = s->reshape[0] / first_ * size_;
      SHARDCALL_ASSIGN_OR_RETURN(const DeviceOrder order, DeviceOrder::Iota(s->reshape, s->perm));
      s->reshape.assign(order.reshape().begin(), order.reshape().end());
      s->perm.assign(order.perm().begin(), order.perm().end());
      CanonicalizeTiles(s);
      return absl::OkStatus();
    }
    return Refused("the tiling cuts the first axis", where, "resize a mesh with named axes",
                   absl::StrCat("one tile dimension over ", first_, " devices"), s->Print());
  }

  absl::Span<const AxisSize> sizes_;
  Module& m_;
  std::vector<bool> used_;          // whether each entry of sizes_ was used
  std::vector<std::string> names_;  // names of all axes
  int64_t devices_ = 1;
  int64_t present_devices_ = 1;
  int64_t first_ = 1;  // present size of the first axis of unnamed tilings
  int64_t size_ = 0;   // its new size; 0 if it stays
};

}  // namespace

absl::Status Remesh(absl::Span<const AxisSize> sizes, Module* module) {
  SHARDCALL_RETURN_IF_ERROR(CheckNotMovedFrom(*module));
  return Remesher(sizes, module).Run();
}

}  // namespace internal
}  // namespace shardcall
