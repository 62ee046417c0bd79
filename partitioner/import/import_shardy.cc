// SPDX-License-Identifier: Apache-2.0
// Reads Shardy's form: attributes `xla.sdy.*`, which take precedence over other annotations.
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/import/import_annotations.h"
#include "shardcall/partitioner/ir/annotation_names.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {

absl::Status Annotations::CollectShardy(const Instruction& i, MeshCollector* collector) {
  if (i.frontend == nullptr) return absl::OkStatus();
  const auto [it, fresh] = shardy_.try_emplace(i.frontend);
  if (!fresh) return absl::OkStatus();
  SdyAttributes& out = it->second;
  for (const auto& [key, value] : i.frontend->entries) {
    if (!absl::StartsWith(key, kSdyPrefix)) continue;
    std::vector<NamedSharding>* into = nullptr;
    if (key == kSdySharding) {
      into = &out.shardings;
      out.has_sharding = true;
    } else if (key == kSdyInShardings || key == kSdyOutShardings) {
      into = &out.boundary;
      out.is_boundary = true;
    } else if (key == kSdyManualAxes) {
      absl::StatusOr<std::vector<std::string>> axes = ParseSdyManualAxes(value);
      if (!axes.ok()) return At(axes.status(), i);
      out.manual_axes = *std::move(axes);
    }
    if (into == nullptr) continue;
    absl::StatusOr<std::vector<NamedSharding>> parsed = ParseSdyShardings(value);
    if (!parsed.ok()) return At(parsed.status(), i);
    *into = *std::move(parsed);
    // Without the dictionary of meshes `@mesh` cannot be resolved, so `sharding=` is used.
    if (into == &out.shardings && !has_dictionary_) {
      for (const NamedSharding& s : out.shardings) {
        if (s.mesh == nullptr && i.sharding != nullptr) out.has_sharding = false;
      }
      if (!out.has_sharding) continue;
    }
    for (const NamedSharding& s : *into) {
      if (absl::Status status = collector->AddTiling(s); !status.ok()) return At(status, i);
      if (s.mesh != nullptr) user_meshes_.push_back(*s.mesh);
    }
  }
  return absl::OkStatus();
}

// False where the attribute is a copy: XLA copies to a get-tuple-element the attributes of its
// producer.
bool Annotations::UsesShardyAttribute(InstrId id, const SdyAttributes** out) const {
  const Instruction& i = m_.instr(id);
  if (i.frontend == nullptr) return false;
  const auto it = shardy_.find(i.frontend);
  if (it == shardy_.end()) return false;
  *out = &it->second;
  if (!it->second.has_sharding) return false;
  if (i.opcode != Opcode::kGetTupleElement) return true;
  return Attribute(m_.instr(m_.operand(id, 0)), kSdySharding).empty();
}

absl::Status Annotations::ReadShardy(InstrId id, const SdyAttributes& attributes) {
  const Instruction& i = m_.instr(id);
  const int leaves = i.shape->num_leaves();
  if (leaves == 0) return absl::OkStatus();
  const int given = static_cast<int>(attributes.shardings.size());
  int arrays = 0;
  for (int k = 0; k < leaves; ++k) arrays += LeafShape(id, k) != nullptr;
  if (given != 1 && given != leaves && given != arrays) {
    return ToStatus({.code = "E165",
                     .message = "the attribute xla.sdy.sharding has another number of entries "
                                "than the instruction has results",
                     .where = std::string(i.name),
                     .expected = absl::StrCat(leaves),
                     .found = absl::StrCat(given),
                     .fix = "give one sharding per result"});
  }
  int at = 0;
  for (int k = 0; k < leaves; ++k) {
    const Shape* leaf = LeafShape(id, k);
    const int entry = given == leaves ? k : given == 1 ? 0 : at;
    if (leaf == nullptr) continue;
    ++at;
    const NamedSharding& named = attributes.shardings[entry];
    const ShardingConstraint*& known = memo_[MemoKey(&named, leaf->rank(), nullptr)];
    if (known == nullptr) {
      absl::StatusOr<ShardingConstraint> c = meshes_.FromNamed(named, leaf->rank());
      if (!c.ok()) return At(c.status(), i);
      known = Own(*std::move(c));
    }
    p_.constraints[p_.leaves.leaf(id, k).value] = known;
  }
  return absl::OkStatus();
}

absl::Status Annotations::ReadShardyBoundary(InstrId id, const SdyAttributes& attributes) {
  const Instruction& i = m_.instr(id);
  ManualBoundary boundary;
  boundary.entry = IsManualEntry(i);
  const size_t operands = m_.operands(i).size();
  const absl::string_view key = boundary.entry ? kSdyInShardings : kSdyOutShardings;
  if (!attributes.is_boundary || attributes.boundary.size() != operands ||
      static_cast<size_t>(i.shape->num_leaves()) != operands) {
    return ToStatus({.code = "E173",
                     .message = absl::StrCat("a boundary of a manual region must have as many "
                                             "results and entries in ",
                                             key, " as operands"),
                     .where = std::string(i.name),
                     .expected = absl::StrCat(operands),
                     .found = absl::StrCat(i.shape->num_leaves(), " results and ",
                                           attributes.boundary.size(), " entries"),
                     .fix = "Write one sharding for each operand"});
  }
  if (operands == 0) {
    p_.boundaries[id] = std::move(boundary);
    return absl::OkStatus();
  }
  const NamedSharding& first = attributes.boundary[0];
  const Mesh* mesh = first.mesh != nullptr ? first.mesh.get() : meshes_.FindMesh(first.mesh_name);
  if (mesh == nullptr) {
    return ToStatus({.code = "E163",
                     .message = absl::StrCat("there is no mesh @", first.mesh_name),
                     .where = std::string(i.name),
                     .fix = "declare the mesh in the module's xla.sdy.meshes"});
  }
  absl::StatusOr<AxisList> axes = meshes_.AxesByName(*mesh, attributes.manual_axes);
  if (!axes.ok()) return At(axes.status(), i);
  boundary.manual_axes = AsSet(*p_.mesh, *axes);
  std::vector<const ShardingConstraint*> global;
  for (size_t k = 0; k < operands; ++k) {
    const Shape* leaf = LeafShape(id, static_cast<int>(k));
    if (leaf == nullptr) {
      global.push_back(nullptr);
      continue;
    }
    absl::StatusOr<ShardingConstraint> c = meshes_.FromNamed(attributes.boundary[k], leaf->rank());
    if (!c.ok()) return At(c.status(), i);
    c->manual.clear();
    const ShardingConstraint* whole = Own(*std::move(c));
    global.push_back(whole);
    // Inside the region the remaining axes of each dimension are the free ones.
    if (boundary.entry) {
      ShardingConstraint local = *whole;
      for (ShardingConstraint::Dim& d : local.dims) {
        d.axes = Minus(*whole->mesh, d.axes, boundary.manual_axes);
      }
      local.replicated = Minus(*whole->mesh, local.replicated, boundary.manual_axes);
      local.unreduced = Minus(*whole->mesh, local.unreduced, boundary.manual_axes);
      whole = Own(std::move(local));
    }
    p_.constraints[p_.leaves.leaf(id, static_cast<int>(k)).value] = whole;
  }
  return SetManualDims(id, global, std::move(boundary));
}

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall
