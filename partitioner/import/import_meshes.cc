// SPDX-License-Identifier: Apache-2.0
// Collects the meshes of a module and the number of its devices.
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/import/import_annotations.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {
namespace {

absl::Status CountsDiffer(absl::string_view what, int64_t expected, int64_t found,
                          absl::string_view fix) {
  return ToStatus({.code = "E051",
                   .message = absl::StrCat(what, " differ in the number of devices"),
                   .expected = absl::StrCat(expected),
                   .found = absl::StrCat(found),
                   .fix = std::string(fix)});
}

bool HasList(const HloSharding& s) {
  for (const HloSharding& e : s.tuple) {
    if (e.is_list()) return true;
  }
  return s.is_list();
}

}  // namespace

absl::Status Annotations::CollectShardings(MeshCollector* collector) {
  absl::flat_hash_set<const HloSharding*> seen;
  std::vector<InstrId> lists;
  for (int n = 0; n < m_.num_instructions(); ++n) {
    const Instruction& i = m_.instr(InstrId(n));
    SHARDCALL_RETURN_IF_ERROR(CollectShardy(i, collector));
    // Shardy has no annotation for the data of an outfeed.
    const bool counts = !has_dictionary_ || i.opcode == Opcode::kOutfeed;
    if (i.sharding == nullptr || !counts || !seen.insert(i.sharding).second) continue;
    // Iota forms first: the program's main mesh is the one of the common device order.
    if (HasList(*i.sharding)) {
      lists.push_back(InstrId(n));
      continue;
    }
    if (absl::Status s = collector->AddTiling(*i.sharding); !s.ok()) return At(s, i);
    if (i.sharding->kind == HloSharding::Kind::kNamed) {
      if (i.sharding->named.mesh != nullptr) user_meshes_.push_back(*i.sharding->named.mesh);
    }
    for (const HloSharding& e : i.sharding->tuple) {
      if (e.named.mesh != nullptr) user_meshes_.push_back(*e.named.mesh);
    }
  }
  for (InstrId id : lists) {
    const Instruction& i = m_.instr(id);
    if (absl::Status s = collector->AddTiling(*i.sharding); !s.ok()) return At(s, i);
  }
  return absl::OkStatus();
}

absl::Status Annotations::ReadMeshes(const ImportOptions& options) {
  const ModuleHeader& header = m_.header;
  const int64_t given = header.has_num_partitions ? header.num_partitions : 0;
  const int64_t wanted = options.num_partitions;
  if (given > 0 && wanted > 0 && given != wanted) {
    return CountsDiffer("the module's num_partitions and the requested number of partitions", given,
                        wanted, "request what the module is made for, or leave it out");
  }
  MeshCollector collector;
  const absl::string_view base =
      header.frontend == nullptr ? absl::string_view() : header.frontend->Find(kBaseMeshes);
  if (!base.empty()) {
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Mesh> meshes, ParseSdyMeshes(base));
    for (const Mesh& m : meshes) collector.AddBase(m);
  }
  const absl::string_view dictionary =
      header.frontend == nullptr ? absl::string_view() : header.frontend->Find(kSdyMeshes);
  has_dictionary_ = !dictionary.empty();
  p_.uses_shardy = has_dictionary_;
  if (has_dictionary_) {
    SHARDCALL_ASSIGN_OR_RETURN(user_meshes_, ParseSdyMeshes(dictionary));
    for (const Mesh& m : user_meshes_) collector.AddNamed(m);
  }
  SHARDCALL_RETURN_IF_ERROR(CollectShardings(&collector));

  Context& context = m_.context();
  const int64_t devices = given > 0 ? given : wanted;
  absl::StatusOr<MeshSet> meshes = collector.Finish(context, devices);
  if (!meshes.ok()) {
    // If the meshes agree with each other and only the number of devices differs, report that.
    absl::StatusOr<MeshSet> natural = collector.Finish(context, 0);
    if (devices > 0 && natural.ok() && natural->num_devices() != devices) {
      return CountsDiffer(given > 0 ? "the module's num_partitions and its meshes"
                                    : "the requested number of partitions and the module's meshes",
                          devices, natural->num_devices(),
                          given > 0 ? "use meshes over all partitions, or correct num_partitions"
                                    : "request as many partitions as the meshes have devices");
    }
    return meshes.status();
  }
  meshes_ = *std::move(meshes);
  p_.num_partitions = meshes_.num_devices();
  p_.mesh = meshes_.main();
  p_.meshes.assign(meshes_.bases().begin(), meshes_.bases().end());
  if (!base.empty()) SHARDCALL_RETURN_IF_ERROR(NameBaseMeshes());
  return absl::OkStatus();
}

// The base meshes of an exported module are declared under names of their own; diagnostics use the
// names of the user's meshes.
absl::Status Annotations::NameBaseMeshes() {
  std::vector<BaseMesh*> bases;
  for (const BaseMesh* base : p_.meshes) {
    std::vector<int64_t> sizes;
    for (int k = 0; k < base->num_axes(); ++k) sizes.push_back(base->axis_size(k));
    bases.push_back(InternBaseMesh(m_.context(), std::move(sizes), base->order()));
    bases.back()->SetNames("", {});
  }
  for (const Mesh& mesh : user_meshes_) {
    if (mesh.axes.empty()) continue;
    SHARDCALL_ASSIGN_OR_RETURN(const MeshSet::Placed placed, meshes_.Place(mesh));
    for (BaseMesh* base : bases) {
      if (base != placed.base || !base->names().empty()) continue;
      std::vector<BaseMesh::NamedAxis> names;
      for (const MeshAxis& axis : mesh.axes) {
        const std::string name = axis.name;
        SHARDCALL_ASSIGN_OR_RETURN(AxisList refs,
                                   meshes_.AxesByName(mesh, absl::MakeConstSpan(&name, 1)));
        if (!refs.empty()) names.push_back({name, std::move(refs)});
      }
      base->SetNames(mesh.name, std::move(names));
    }
  }
  return absl::OkStatus();
}

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall
