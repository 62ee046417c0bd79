// SPDX-License-Identifier: Apache-2.0
// Conversions from base meshes back to the text forms.
#include "shardcall/sharding/convert/convert.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status CannotSay(absl::string_view what, absl::string_view form) {
  return ToStatus({.code = "E164",
                   .message = absl::StrCat(form, " cannot say ", what),
                   .fix = "print the named form, or reduce the value first"});
}

ShardingConstraint AsConstraint(const Sharding& s, bool open) {
  ShardingConstraint out;
  out.mesh = s.mesh();
  out.dims.resize(s.rank());
  for (int i = 0; i < s.rank(); ++i) {
    out.dims[i].axes.assign(s.dim(i).begin(), s.dim(i).end());
    out.dims[i].open = open;
  }
  out.unreduced.assign(s.partial().begin(), s.partial().end());
  out.unreduced_op = s.partial_op();
  out.manual.assign(s.manual().begin(), s.manual().end());
  out.maximal_device = s.maximal_device();
  return out;
}

// Whether the user's axis names cover the whole mesh.
bool NamesCover(const BaseMesh& base) {
  AxisList all;
  for (const BaseMesh::NamedAxis& n : base.names()) {
    all.insert(all.end(), n.refs.begin(), n.refs.end());
  }
  return AxesSize(all) == base.num_devices();
}

std::vector<NamedAxisRef> Names(const BaseMesh& base, absl::Span<const AxisRef> axes) {
  if (NamesCover(base)) return NameAxes(base, axes);
  BaseMesh unnamed = base;
  unnamed.SetNames("", {});
  return NameAxes(unnamed, axes);
}

}  // namespace

const Sharding* ToSharding(Context& context, const ShardingConstraint& c) {
  SHARDCALL_CHECK(!c.unknown);
  ShardingBuilder b(c.mesh, static_cast<int>(c.dims.size()));
  for (size_t i = 0; i < c.dims.size(); ++i) b.dims[i] = c.dims[i].axes;
  b.partial = c.unreduced;
  b.partial_op = c.unreduced_op;
  b.manual = c.manual;
  b.maximal_device = c.maximal_device;
  return b.Intern(context);
}

absl::StatusOr<HloSharding> ToHloSharding(const Sharding& sharding) {
  return ToHloSharding(AsConstraint(sharding, /*open=*/false));
}

absl::StatusOr<HloSharding> ToHloSharding(const ShardingConstraint& c) {
  HloSharding out;
  if (c.shard_as >= 0) {
    out.group = HloSharding::GroupKind::kShardAs;
    out.group_id = c.shard_as;
  } else if (c.shard_like >= 0) {
    out.group = HloSharding::GroupKind::kShardLike;
    out.group_id = c.shard_like;
  }
  if (c.unknown) {
    out.kind = HloSharding::Kind::kUnknown;
    return out;
  }
  if (c.maximal_device >= 0) {
    out.kind = HloSharding::Kind::kMaximal;
    out.device = c.maximal_device;
    return out;
  }
  if (!c.IsFullyClosed()) return CannotSay("open dimensions", "a tiled sharding");
  if (!c.unreduced.empty() && c.unreduced_op != PartialOp::kSum) {
    return CannotSay(absl::StrCat("values unreduced by ", PartialOpName(c.unreduced_op)),
                     "a tiled sharding");
  }
  const BaseMesh& mesh = *c.mesh;
  AxisList all;
  auto append = [&](absl::Span<const AxisRef> axes) {
    all.insert(all.end(), axes.begin(), axes.end());
    out.tile.push_back(AxesSize(axes));
  };
  out.kind = HloSharding::Kind::kTiled;
  for (const ShardingConstraint::Dim& d : c.dims) append(d.axes);
  auto subgroup = [&](HloSharding::Subgroup kind, absl::Span<const AxisRef> axes) {
    if (axes.empty()) return;
    append(axes);
    out.subgroups.push_back(kind);
  };
  subgroup(HloSharding::Subgroup::kManual, c.manual);
  subgroup(HloSharding::Subgroup::kUnreduced, c.unreduced);
  const AxisList rest = Complement(mesh, all);
  subgroup(HloSharding::Subgroup::kReplicated, rest);
  if (AxesSize(all) == 1) {  // one shard, so nothing is tiled
    out.kind = HloSharding::Kind::kReplicated;
    out.tile.clear();
    return out;
  }
  DeviceOrder order = DeviceOrder::Identity(1);
  if (AxesAsIota(mesh, all, &order)) {
    out.reshape.assign(order.reshape().begin(), order.reshape().end());
    out.perm.assign(order.perm().begin(), order.perm().end());
  } else {
    SHARDCALL_CHECK(AxesSize(all) == mesh.num_devices());
    SHARDCALL_ASSIGN_OR_RETURN(order, DeviceOrder::List(AxesAsList(mesh, all)));
    if (order.is_iota()) {
      out.reshape.assign(order.reshape().begin(), order.reshape().end());
      out.perm.assign(order.perm().begin(), order.perm().end());
    } else {
      out.list.assign(order.list().begin(), order.list().end());
    }
  }
  CanonicalizeTiles(&out);
  return out;
}

Mesh DeclaredMesh(const BaseMesh& base) {
  Mesh out;
  AxisList all;
  if (NamesCover(base)) {
    out.name = base.mesh_name();
    for (const BaseMesh::NamedAxis& n : base.names()) {
      out.axes.push_back({n.name, AxesSize(n.refs)});
      all.insert(all.end(), n.refs.begin(), n.refs.end());
    }
  } else {
    for (int k = 0; k < base.num_axes(); ++k) {
      out.axes.push_back({absl::StrCat("x", k), base.axis_size(k)});
      all.push_back(base.FullAxis(k));
    }
  }
  if (!AxesAsIota(base, all, &out.order)) out.order = *DeviceOrder::List(AxesAsList(base, all));
  return out;
}

std::vector<BaseMesh::NamedAxis> AxesByName(const BaseMesh& base) {
  std::vector<BaseMesh::NamedAxis> axes(base.names().begin(), base.names().end());
  if (!axes.empty()) return axes;
  for (int k = 0; k < base.num_axes(); ++k) {
    axes.push_back({absl::StrCat("x", k), {base.FullAxis(k)}});
  }
  return axes;
}

absl::StatusOr<NamedSharding> ToNamedSharding(const Sharding& sharding, bool inline_mesh,
                                              bool open) {
  return ToNamedSharding(AsConstraint(sharding, open), inline_mesh);
}

absl::StatusOr<NamedSharding> ToNamedSharding(const ShardingConstraint& c, bool inline_mesh) {
  if (c.unknown) return CannotSay("that a sharding is unknown", "a named sharding");
  NamedSharding out;
  if (c.maximal_device >= 0) {
    auto mesh = std::make_shared<Mesh>();
    mesh->maximal_device = c.maximal_device;
    out.mesh = std::move(mesh);
    return out;
  }
  if (!c.unreduced.empty() && c.unreduced_op != PartialOp::kSum &&
      c.unreduced_op != PartialOp::kMax && c.unreduced_op != PartialOp::kMin) {
    return CannotSay(absl::StrCat("values unreduced by ", PartialOpName(c.unreduced_op)),
                     "a named sharding");
  }
  const BaseMesh& base = *c.mesh;
  if (inline_mesh || base.mesh_name().empty() || !NamesCover(base)) {
    auto mesh = std::make_shared<Mesh>(DeclaredMesh(base));
    mesh->name.clear();
    out.mesh = std::move(mesh);
  } else {
    out.mesh_name = base.mesh_name();
  }
  for (const ShardingConstraint::Dim& d : c.dims) {
    NamedSharding::Dim& dim = out.dims.emplace_back();
    dim.axes = Names(base, d.axes);
    dim.open = d.open;
    if (d.priority > 0) dim.priority = d.priority;
  }
  out.replicated = Names(base, c.replicated);
  out.unreduced = Names(base, c.unreduced);
  out.manual = Names(base, c.manual);
  out.unreduced_op = c.unreduced_op;
  // Puts the sets of axes in the order of the declared mesh.
  SHARDCALL_RETURN_IF_ERROR(
      CheckAndNormalize(out.mesh != nullptr ? *out.mesh : DeclaredMesh(base), &out));
  return out;
}

absl::StatusOr<HloSharding> ToHloShardingV3(const Sharding& sharding) {
  return ToHloShardingV3(AsConstraint(sharding, /*open=*/false));
}

absl::StatusOr<HloSharding> ToHloShardingV3(const ShardingConstraint& c) {
  HloSharding out;
  if (c.maximal_device >= 0) {
    out.kind = HloSharding::Kind::kMaximal;
    out.maximal_mesh = true;
    out.device = c.maximal_device;
    return out;
  }
  if (c.unknown) return ToHloSharding(c);
  out.kind = HloSharding::Kind::kNamed;
  SHARDCALL_ASSIGN_OR_RETURN(out.named, ToNamedSharding(c, /*inline_mesh=*/true));
  return out;
}

absl::StatusOr<HloSharding> ToHloShardingOrV3(const Sharding& sharding) {
  return ToHloShardingOrV3(AsConstraint(sharding, /*open=*/false));
}

absl::StatusOr<HloSharding> ToHloShardingOrV3(const ShardingConstraint& c) {
  absl::StatusOr<HloSharding> tiles = ToHloSharding(c);
  return tiles.ok() ? tiles : ToHloShardingV3(c);
}

}  // namespace internal
}  // namespace shardcall
