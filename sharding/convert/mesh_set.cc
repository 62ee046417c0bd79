// SPDX-License-Identifier: Apache-2.0
// Makes base meshes from all meshes and tilings of a module, and converts shardings onto them.
#include "shardcall/sharding/convert/mesh_set.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/convert/device_lists.h"
#include "shardcall/sharding/convert/subset_tiling.h"

namespace shardcall {
inline namespace internal {
namespace {

std::vector<int64_t> AxisSizes(const Mesh& mesh) {
  std::vector<int64_t> out;
  for (const MeshAxis& a : mesh.axes) out.push_back(a.size);
  return out;
}

// Whether the mesh constrains no device order: without axes, maximal, or of one device in a program
// of `n`. JAX exports a function of one device with such a mesh, and calls it on several.
bool IsTrivial(const Mesh& mesh, int64_t n) {
  return mesh.axes.empty() || (n > 1 && mesh.num_devices() == 1);
}

// A base mesh under construction: the strides at which its axes are cut, ascending, each dividing
// the next.
struct Group {
  LooseOrder devices;
  std::vector<int64_t> cuts;
};

bool AddCuts(const TileRuns& tiles, Group* group) {
  std::vector<int64_t> cuts = group->cuts;
  for (const auto& dim : tiles.dims) {
    for (const Run& r : dim) {
      cuts.push_back(r.stride);
      cuts.push_back(r.stride * r.size);
    }
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  for (size_t i = 1; i < cuts.size(); ++i) {
    if (cuts[i] % cuts[i - 1] != 0) return false;
  }
  group->cuts = std::move(cuts);
  return true;
}

// Adds the tiling to the group, if it fits.
bool Join(const DeviceTiling& tiling, Group* group) {
  const std::optional<TileRuns> runs = RunsOver(group->devices.order, tiling);
  if (runs.has_value() && AddCuts(*runs, group)) return true;
  std::optional<LooseOrder> refined = RefinedBy(tiling, group->devices);
  if (!refined.has_value()) return false;
  const std::optional<TileRuns> then = RunsOver(refined->order, tiling);
  if (!then.has_value() || !AddCuts(*then, group)) return false;
  group->devices = *std::move(refined);
  return true;
}

absl::StatusOr<DeviceTiling> TilingOf(const HloSharding& s) {
  SHARDCALL_ASSIGN_OR_RETURN(const DeviceOrder order, s.is_list()
                                                          ? DeviceOrder::List(s.list)
                                                          : DeviceOrder::Iota(s.reshape, s.perm));
  const bool copies =
      !s.subgroups.empty() && s.subgroups.back() == HloSharding::Subgroup::kReplicated;
  return DeviceTiling{RunsOfTiles(order, s.tile), copies ? s.tile.back() : 1};
}

// The part [pre, pre * size) of an axis that is made of `runs`. False if the
// cuts do not divide.
bool PartOfRuns(absl::Span<const Run> runs, int64_t pre, int64_t size, std::vector<Run>* out) {
  for (Run r : runs) {
    if (pre > 1) {
      const int64_t skip = std::gcd(pre, r.size);
      if (skip != std::min(pre, r.size)) return false;
      pre /= skip;
      r.size /= skip;
    }
    if (r.size == 1 || size == 1) continue;
    const int64_t take = std::gcd(size, r.size);
    if (take != std::min(size, r.size)) return false;
    out->push_back({take, r.stride * (r.size / take)});
    size /= take;
  }
  return pre == 1 && size == 1;
}

bool AppendRuns(const BaseMesh& base, absl::Span<const Run> runs, AxisList* out) {
  AxisList part;
  for (const Run& r : runs) {
    if (!base.FromStride(r.stride, r.size, &part)) return false;
    out->insert(out->end(), part.begin(), part.end());
  }
  return true;
}

std::vector<int64_t> SizesOf(const Group& group) {
  std::vector<int64_t> sizes;
  for (size_t i = group.cuts.size(); i-- > 1;) {
    if (group.cuts[i] != group.cuts[i - 1]) sizes.push_back(group.cuts[i] / group.cuts[i - 1]);
  }
  return sizes;
}

// The tiles by positions of the base mesh; empty if they do not fit it.
std::optional<TileRuns> FitTo(const BaseMesh& base, const DeviceTiling& tiling) {
  std::optional<TileRuns> runs = RunsOver(base.order(), tiling);
  if (!runs.has_value()) return std::nullopt;
  AxisList scratch;
  for (const std::vector<Run>& dim : runs->dims) {
    scratch.clear();
    if (!AppendRuns(base, dim, &scratch)) return std::nullopt;
  }
  return runs;
}

absl::Status RankError(int rank, int found) {
  return ToStatus({.code = "E163",
                   .message = "a sharding does not fit the rank of its tensor",
                   .expected = absl::StrCat(rank, " dimensions"),
                   .found = absl::StrCat(found),
                   .fix = "give one dimension sharding per dimension of the tensor"});
}

absl::Status NoRank(int rank) {
  return ToStatus({.code = "E163",
                   .message = "a sharding is wanted of a rank that no tensor has",
                   .expected = absl::StrCat("0 to ", ShardingBuilder::kMaxRank),
                   .found = absl::StrCat(rank),
                   .fix = "give the number of dimensions of the tensor"});
}

absl::Status DeviceCountError(absl::string_view what, int64_t expected, int64_t found) {
  return ToStatus({.code = "E163",
                   .message = absl::StrCat(what, " does not cover the devices of the program"),
                   .expected = absl::StrCat(expected, " devices"),
                   .found = absl::StrCat(found),
                   .fix = "use meshes and tilings over all devices, or set the number of "
                          "partitions to that of the mesh"});
}

// E160 for a mesh that was not made by Mesh::Create and whose axes do not cover its order.
absl::Status CheckCover(const Mesh& m) {
  int64_t n = 1;
  bool fits = true;
  for (const MeshAxis& a : m.axes) {
    fits = fits && a.size >= 1 && !__builtin_mul_overflow(n, a.size, &n) && n <= kMaxDevices;
  }
  if (fits && (m.axes.empty() || n == m.num_devices())) return absl::OkStatus();
  return ToStatus(
      {.code = "E160",
       .message = absl::StrCat("the axes of mesh \"", m.name, "\" do not cover its devices"),
       .expected = absl::StrCat(m.num_devices(), " devices"),
       .found = fits ? absl::StrCat(n) : "a size that no axis has",
       .fix = "Give axes whose sizes multiply to the number of devices"});
}

// Each tiling in a program of `n` devices. Those over all devices come first: the
// program's main mesh is one of theirs.
absl::StatusOr<std::vector<DeviceTiling>> EachTiling(absl::Span<const HloSharding> tilings,
                                                     int64_t n) {
  std::vector<DeviceTiling> out;
  for (const bool subsets : {false, true}) {
    for (const HloSharding& t : tilings) {
      if (NamesSomeDevices(t, n) != subsets) continue;
      if (DevicesNamed(t) > n) return DeviceCountError("a tiling", n, DevicesNamed(t));
      const absl::StatusOr<HloSharding> all = subsets ? OverAllDevices(t, n) : t;
      if (!all.ok() || all->kind != HloSharding::Kind::kTiled) continue;
      SHARDCALL_ASSIGN_OR_RETURN(DeviceTiling tiling, TilingOf(*all));
      out.push_back(std::move(tiling));
    }
  }
  SortLists(&out);
  return out;
}

}  // namespace

void MeshCollector::AddNamed(const Mesh& mesh) {
  if (mesh.maximal_device < 0 || !mesh.name.empty()) meshes_.push_back(mesh);
}

void MeshCollector::AddBase(const Mesh& mesh) {
  SHARDCALL_CHECK(meshes_.size() == num_bases_);
  AddNamed(mesh);
  num_bases_ = meshes_.size();
}

absl::Status MeshCollector::AddTiling(const HloSharding& s) {
  if (s.kind == HloSharding::Kind::kTuple) {
    for (const HloSharding& e : s.tuple) SHARDCALL_RETURN_IF_ERROR(AddTiling(e));
  } else if (s.kind == HloSharding::Kind::kNamed) {
    return AddTiling(s.named);
  } else if (s.kind == HloSharding::Kind::kTiled) {
    SHARDCALL_RETURN_IF_ERROR(CheckDevices(s));
    tilings_.push_back(s);
  }
  return absl::OkStatus();
}

absl::Status MeshCollector::AddTiling(const NamedSharding& s) {
  if (s.mesh != nullptr) {
    for (const Mesh& m : meshes_) {
      if (m.axes == s.mesh->axes && m.order == s.mesh->order &&
          m.maximal_device == s.mesh->maximal_device) {
        return absl::OkStatus();
      }
    }
    AddNamed(*s.mesh);
  }
  return absl::OkStatus();
}

absl::StatusOr<MeshSet> MeshCollector::Finish(Context& context, int64_t num_devices) {
  for (const Mesh& m : meshes_) SHARDCALL_RETURN_IF_ERROR(CheckCover(m));
  int64_t n = num_devices;
  if (n < 0 || n > kMaxDevices) return DeviceCountError("no mesh", 1, n);
  if (n == 0) {
    n = 1;
    for (const Mesh& m : meshes_) n = std::max(n, m.num_devices());
    for (const HloSharding& t : tilings_) {
      const int64_t tiles = std::max<int64_t>(1, t.num_devices());
      n = std::max(n, CeilDiv(DevicesNamed(t), tiles) * tiles);
    }
  }
  std::vector<Group> groups;
  std::vector<BaseMesh> fixed;  // declared base meshes
  auto add = [&](const DeviceTiling& tiling) {
    for (const BaseMesh& base : fixed) {
      if (FitTo(base, tiling).has_value()) return;
    }
    for (Group& g : groups) {
      if (Join(tiling, &g)) return;
    }
    groups.push_back({OrderOf(tiling), {1, n}});
    SHARDCALL_CHECK(AddCuts(tiling.runs, &groups.back()));
  };
  for (size_t k = 0; k < meshes_.size(); ++k) {
    const Mesh& m = meshes_[k];
    if (k == num_bases_) {
      for (const Group& g : groups) fixed.emplace_back(SizesOf(g), g.devices.order);
    }
    if (m.maximal_device >= n) {
      return ToStatus({.code = "E163",
                       .message = absl::StrCat("mesh \"", m.name,
                                               "\" names a device that the "
                                               "program does not have"),
                       .expected = absl::StrCat("0 to ", n - 1),
                       .found = absl::StrCat(m.maximal_device),
                       .fix = "use a device id below the number of partitions"});
    }
    if (IsTrivial(m, n)) continue;
    if (m.num_devices() != n) {
      return DeviceCountError(absl::StrCat("mesh \"", m.name, "\""), n, m.num_devices());
    }
    add({RunsOfTiles(m.order, AxisSizes(m))});
  }
  if (fixed.empty() && num_bases_ > 0) {
    for (const Group& g : groups) fixed.emplace_back(SizesOf(g), g.devices.order);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<DeviceTiling> tilings, EachTiling(tilings_, n));
  for (const DeviceTiling& tiling : tilings) add(tiling);
  if (groups.empty()) add({{DeviceOrder::Identity(n), {}}});
  MeshSet out;
  out.meshes_ = meshes_;
  std::vector<BaseMesh*> bases;
  for (const Group& g : groups) {
    bases.push_back(InternBaseMesh(context, SizesOf(g), g.devices.order));
    bases.back()->SetNames("", {});
    out.bases_.push_back(bases.back());
  }
  for (const Mesh& m : meshes_) {
    if (IsTrivial(m, n)) continue;
    SHARDCALL_ASSIGN_OR_RETURN(MeshSet::Placed placed, out.Place(m));
    BaseMesh* base = nullptr;
    for (BaseMesh* b : bases) base = b == placed.base ? b : base;
    if (!base->names().empty()) continue;
    std::vector<BaseMesh::NamedAxis> names;
    for (size_t k = 0; k < m.axes.size(); ++k) {
      BaseMesh::NamedAxis axis{m.axes[k].name, {}};
      SHARDCALL_CHECK(AppendRuns(*base, placed.axes[k], &axis.refs));
      if (!axis.refs.empty()) names.push_back(std::move(axis));
    }
    base->SetNames(m.name, std::move(names));
  }
  return out;
}

const Mesh* MeshSet::FindMesh(absl::string_view name) const {
  for (const Mesh& m : meshes_) {
    if (m.name == name) return &m;
  }
  return nullptr;
}

absl::StatusOr<MeshSet::Placed> MeshSet::Place(const Mesh& mesh) const {
  Placed out;
  if (mesh.num_devices() == num_devices()) {
    const DeviceTiling tiles = {RunsOfTiles(mesh.order, AxisSizes(mesh))};
    for (const BaseMesh* base : bases_) {
      std::optional<TileRuns> runs = FitTo(*base, tiles);
      if (!runs.has_value()) continue;
      out.base = base;
      out.axes = std::move(runs->dims);
      return out;
    }
  }
  return DeviceCountError(absl::StrCat("mesh \"", mesh.name, "\""), num_devices(),
                          mesh.num_devices());
}

namespace {

// XLA of jaxlib 0.12 writes the reduction of unreduced axes as metadata where a sharding has no
// other place for it: metadata={op_type="sdy::reduction_op" op_name="MAX"}.
absl::Status SetReduction(const HloSharding& s, ShardingConstraint* out) {
  if (out->unreduced.empty()) return absl::OkStatus();
  constexpr absl::string_view kType = "op_type=\"sdy::reduction_op\"";
  for (absl::string_view metadata : s.metadata) {
    if (!absl::StrContains(metadata, kType)) continue;
    if (absl::StrContains(metadata, "op_name=\"MAX\"")) {
      out->unreduced_op = PartialOp::kMax;
    } else if (absl::StrContains(metadata, "op_name=\"MIN\"")) {
      out->unreduced_op = PartialOp::kMin;
    } else if (!absl::StrContains(metadata, "op_name=\"SUM\"")) {
      return ToStatus({.code = "E165",
                       .message = "a sharding names a reduction that is not known",
                       .expected = "SUM, MAX or MIN",
                       .found = std::string(metadata),
                       .fix = "reduce the value before it is annotated"});
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ShardingConstraint> MeshSet::FromHlo(const HloSharding& s, int rank) const {
  if (!ShardingBuilder::FitsRank(rank)) return NoRank(rank);
  if (s.kind == HloSharding::Kind::kNamed) return FromNamed(s.named, rank);
  ShardingConstraint out;
  out.mesh = main();
  out.dims.resize(rank);
  if (s.group == HloSharding::GroupKind::kShardAs) out.shard_as = s.group_id;
  if (s.group == HloSharding::GroupKind::kShardLike) out.shard_like = s.group_id;
  switch (s.kind) {
    case HloSharding::Kind::kReplicated: return out;
    case HloSharding::Kind::kManual: out.manual = Complement(*main(), {}); return out;
    case HloSharding::Kind::kUnreduced:
      out.unreduced = Complement(*main(), {});
      SHARDCALL_RETURN_IF_ERROR(SetReduction(s, &out));
      return out;
    case HloSharding::Kind::kUnknown:
      out.unknown = true;
      for (auto& d : out.dims) d.open = true;
      return out;
    case HloSharding::Kind::kMaximal:
      if (s.device >= num_devices()) {
        return ToStatus({.code = "E163",
                         .message = "a maximal sharding names a device that the program does not "
                                    "have",
                         .expected = absl::StrCat("0 to ", num_devices() - 1),
                         .found = absl::StrCat(s.device),
                         .fix = "use a device id below the number of partitions"});
      }
      out.maximal_device = s.device;
      return out;
    case HloSharding::Kind::kTuple:
      return ToStatus({.code = "E163",
                       .message = "an array has the sharding of a tuple",
                       .found = s.Print(),
                       .fix = "give one sharding without the outer braces"});
    case HloSharding::Kind::kNamed:
    case HloSharding::Kind::kTiled: break;
  }
  if (s.num_data_dims() != rank) return RankError(rank, s.num_data_dims());
  if (NamesSomeDevices(s, num_devices())) {
    SHARDCALL_ASSIGN_OR_RETURN(const HloSharding all, OverAllDevices(s, num_devices()));
    return FromHlo(all, rank);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const DeviceTiling tiling, TilingOf(s));
  for (const BaseMesh* base : bases_) {
    const std::optional<TileRuns> runs = RunsOver(base->order(), tiling);
    bool fits = runs.has_value();
    out.mesh = base;
    out.manual.clear();
    out.unreduced.clear();
    AxisList axes;
    for (size_t t = 0; fits && t < runs->dims.size(); ++t) {
      axes.clear();
      fits = AppendRuns(*base, runs->dims[t], &axes);
      axes = Canonical(*base, axes);
      if (static_cast<int>(t) < rank) {
        out.dims[t].axes = axes;
      } else if (s.subgroups[t - rank] == HloSharding::Subgroup::kManual) {
        out.manual.insert(out.manual.end(), axes.begin(), axes.end());
      } else if (s.subgroups[t - rank] == HloSharding::Subgroup::kUnreduced) {
        out.unreduced.insert(out.unreduced.end(), axes.begin(), axes.end());
      }
    }
    if (!fits) continue;
    SHARDCALL_RETURN_IF_ERROR(SetReduction(s, &out));
    return out;
  }
  return DeviceCountError(absl::StrCat("the tiling ", s.Print()), num_devices(),
                          tiling.runs.order.num_devices());
}

absl::StatusOr<ShardingConstraint> MeshSet::FromNamed(const NamedSharding& written,
                                                      int rank) const {
  if (!ShardingBuilder::FitsRank(rank)) return NoRank(rank);
  const Mesh* mesh = written.mesh.get();
  if (mesh == nullptr) mesh = FindMesh(written.mesh_name);
  if (mesh == nullptr) {
    return ToStatus(
        {.code = "E163",
         .message = absl::StrCat("there is no mesh @", written.mesh_name),
         .expected = absl::StrCat("one of ", absl::StrJoin(meshes_, ", ",
                                                           [](std::string* o, const Mesh& m) {
                                                             absl::StrAppend(o, "@", m.name);
                                                           })),
         .fix = "declare the mesh in the module's xla.sdy.meshes"});
  }
  ShardingConstraint out;
  out.mesh = main();
  if (mesh->maximal_device >= 0) {
    if (mesh->maximal_device >= num_devices()) {
      const int64_t last = std::min(mesh->maximal_device, std::numeric_limits<int64_t>::max() - 1);
      return DeviceCountError(absl::StrCat("mesh \"", mesh->name, "\""), num_devices(), last + 1);
    }
    out.dims.resize(rank);
    out.maximal_device = mesh->maximal_device;
    return out;
  }
  NamedSharding s = written;
  SHARDCALL_RETURN_IF_ERROR(CheckAndNormalize(*mesh, &s));
  const bool word = s.mesh != nullptr && s.dims.empty();  // V3 `mesh[..], replicated`
  if (!word && static_cast<int>(s.dims.size()) != rank) return RankError(rank, s.dims.size());
  Placed placed;
  if (IsTrivial(*mesh, num_devices())) {
    placed.base = main();
  } else {
    SHARDCALL_ASSIGN_OR_RETURN(placed, Place(*mesh));
  }
  out.mesh = placed.base;
  auto convert = [&](const std::vector<NamedAxisRef>& refs, AxisList* axes) {
    AxisList parts;
    for (const NamedAxisRef& ref : refs) {
      size_t k = 0;
      while (mesh->axes[k].name != ref.name) ++k;
      if (k >= placed.axes.size()) continue;  // of a trivial mesh, whose axes have size 1
      std::vector<Run> runs;
      const int64_t size = ref.size == 0 ? mesh->axes[k].size : ref.size;
      if (!PartOfRuns(placed.axes[k], ref.pre_size, size, &runs) ||
          !AppendRuns(*placed.base, runs, &parts)) {
        return ToStatus({.code = "E162",
                         .message = absl::StrCat("the part ", AxisRefText(ref),
                                                 " does not divide the devices of its mesh as "
                                                 "other shardings of the program do"),
                         .fix = "use parts whose sizes divide each other"});
      }
    }
    *axes = Canonical(*placed.base, parts);
    return absl::OkStatus();
  };
  out.dims.resize(rank);
  for (size_t i = 0; i < s.dims.size(); ++i) {
    SHARDCALL_RETURN_IF_ERROR(convert(s.dims[i].axes, &out.dims[i].axes));
    out.dims[i].open = s.dims[i].open;
    out.dims[i].priority = std::max(0, s.dims[i].priority);
  }
  SHARDCALL_RETURN_IF_ERROR(convert(s.replicated, &out.replicated));
  SHARDCALL_RETURN_IF_ERROR(convert(s.unreduced, &out.unreduced));
  SHARDCALL_RETURN_IF_ERROR(convert(s.manual, &out.manual));
  out.unreduced_op = s.unreduced_op;
  return out;
}

absl::StatusOr<AxisList> MeshSet::AxesByName(const Mesh& mesh,
                                             absl::Span<const std::string> names) const {
  NamedSharding s;
  s.mesh = std::make_shared<Mesh>(mesh);
  for (const std::string& name : names) s.manual.push_back({.name = name});
  SHARDCALL_ASSIGN_OR_RETURN(ShardingConstraint c, FromNamed(s, 0));
  return c.manual;
}

}  // namespace internal
}  // namespace shardcall
