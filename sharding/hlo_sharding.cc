// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/hlo_sharding.h"

#include <algorithm>
#include <numeric>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/sharding/base/text_cursor.h"
#include "shardcall/sharding/tile_runs.h"

namespace shardcall {
namespace {

using Dims = absl::InlinedVector<int64_t, 8>;

int64_t Product(absl::Span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

// Puts the tile dims in the order `dims` (which may leave out dims of size 1)
// and sorts the devices within `sorted_dim`, an index into `dims`, or -1.
void Transpose(const std::vector<size_t>& dims, int sorted_dim, HloSharding* s) {
  if (!s->is_list()) {
    std::vector<std::vector<Run>> runs;
    if (!CutAtTiles(s->reshape, s->perm, s->tile, &runs)) {
      // The tiles do not divide the reshape dims: list the devices, as XLA does.
      const DeviceOrder order = *DeviceOrder::Iota(s->reshape, s->perm);
      for (int64_t p = 0; p < order.num_devices(); ++p) s->list.push_back(order.DeviceAt(p));
      s->reshape.clear();
      s->perm.clear();
    } else {
      std::vector<Run> out;
      for (size_t i = 0; i < dims.size(); ++i) {
        std::vector<Run> part = runs[dims[i]];
        if (static_cast<int>(i) == sorted_dim) {
          std::sort(part.begin(), part.end(),
                    [](const Run& a, const Run& b) { return a.stride > b.stride; });
        }
        out.insert(out.end(), part.begin(), part.end());
      }
      const DeviceOrder order = OrderOfRuns(out);
      s->reshape.assign(order.reshape().begin(), order.reshape().end());
      s->perm.assign(order.perm().begin(), order.perm().end());
    }
  }
  Dims strides(s->tile.size(), 1);
  for (int i = static_cast<int>(s->tile.size()) - 2; i >= 0; --i) {
    strides[i] = strides[i + 1] * s->tile[i + 1];
  }
  std::vector<int64_t> tile;
  for (size_t d : dims) tile.push_back(s->tile[d]);
  if (s->is_list()) {
    std::vector<int64_t> list(s->list.size());
    for (size_t p = 0; p < list.size(); ++p) {
      int64_t from = 0, rest = p;
      for (size_t i = dims.size(); i-- > 0;) {
        from += rest % tile[i] * strides[dims[i]];
        rest /= tile[i];
      }
      list[p] = s->list[from];
    }
    if (sorted_dim >= 0) {  // always the last one
      const int64_t n = tile[sorted_dim];
      for (size_t i = 0; i + n <= list.size(); i += n) {
        std::sort(list.begin() + i, list.begin() + i + n);
      }
    }
    s->list = std::move(list);
  }
  s->tile = std::move(tile);
}

const char* SubgroupName(HloSharding::Subgroup g) {
  switch (g) {
    case HloSharding::Subgroup::kManual: return "manual";
    case HloSharding::Subgroup::kUnreduced: return "unreduced";
    case HloSharding::Subgroup::kReplicated: return "replicated";
  }
  return "";
}

void AppendTiles(const HloSharding& s, std::string* out) {
  absl::StrAppend(out, "devices=[", absl::StrJoin(s.tile, ","), "]");
  if (s.is_list()) {
    absl::StrAppend(out, absl::StrJoin(s.list, ","));
  } else {
    absl::StrAppend(out, "<=[", absl::StrJoin(s.reshape, ","), "]");
    if (s.perm.size() > 1) absl::StrAppend(out, "T(", absl::StrJoin(s.perm, ","), ")");
  }
  if (s.subgroups.size() == 1 && s.subgroups[0] == HloSharding::Subgroup::kReplicated) {
    *out += " last_tile_dim_replicate";
  } else if (!s.subgroups.empty()) {
    absl::StrAppend(out, " last_tile_dims={",
                    absl::StrJoin(s.subgroups, ", ",
                                  [](std::string* o, HloSharding::Subgroup g) {
                                    absl::StrAppend(o, SubgroupName(g));
                                  }),
                    "}");
  }
}

bool IsWholeMesh(const Mesh& mesh, const std::vector<NamedAxisRef>& refs) {
  if (refs.empty() || refs.size() != mesh.axes.size()) return false;
  for (size_t i = 0; i < refs.size(); ++i) {
    if (refs[i].name != mesh.axes[i].name || refs[i].size != 0) return false;
  }
  return true;
}

void AppendNamed(const NamedSharding& s, absl::Span<const int64_t> list, std::string* out) {
  const Mesh& mesh = *s.mesh;
  absl::StrAppend(out, "mesh[",
                  absl::StrJoin(mesh.axes, ",",
                                [](std::string* o, const MeshAxis& a) {
                                  absl::StrAppend(o, QuotedText(a.name, '\''), "=", a.size);
                                }),
                  "]");
  if (!mesh.order.is_identity()) {
    if (mesh.order.is_iota() && list.empty()) {
      absl::StrAppend(out, ", device_ids=([", absl::StrJoin(mesh.order.reshape(), ","), "]T(",
                      absl::StrJoin(mesh.order.perm(), ","), "))");
    } else {
      absl::StrAppend(out, ", device_ids=(",
                      absl::StrJoin(list.empty() ? mesh.order.list() : list, ","), ")");
    }
  }
  if (s.dims.empty() && s.unreduced_op == PartialOp::kSum) {
    const bool r = s.replicated.empty(), u = s.unreduced.empty(), m = s.manual.empty();
    const char* word = r && u && m                                ? ", replicated"
                       : r && u && IsWholeMesh(mesh, s.manual)    ? ", manual"
                       : r && m && IsWholeMesh(mesh, s.unreduced) ? ", unreduced"
                                                                  : nullptr;
    if (word != nullptr) {
      *out += word;
      return;
    }
  }
  *out += ", [";
  for (size_t i = 0; i < s.dims.size(); ++i) {
    const NamedSharding::Dim& d = s.dims[i];
    absl::StrAppend(out, i > 0 ? ", {" : "{", AxisRefsText(d.axes, '\''),
                    !d.open          ? ""
                    : d.axes.empty() ? "?"
                                     : ", ?",
                    "}");
  }
  *out += "]";
  auto append = [&](const char* key, const std::vector<NamedAxisRef>& refs) {
    if (!refs.empty()) absl::StrAppend(out, ", ", key, "{", AxisRefsText(refs, '\''), "}");
  };
  append("replicated=", s.replicated);
  append(s.unreduced_op == PartialOp::kMax   ? "unreduced=max"
         : s.unreduced_op == PartialOp::kMin ? "unreduced=min"
                                             : "unreduced=",
         s.unreduced);
  append("manual=", s.manual);
}

}  // namespace

int64_t HloSharding::num_devices() const { return Product(tile); }

void CanonicalizeTiles(HloSharding* s) {
  if (s->kind != HloSharding::Kind::kTiled || s->subgroups.empty()) return;
  const int data = s->num_data_dims();
  // The order of the dims, and the subgroups that remain.
  std::vector<size_t> order;
  for (int i = 0; i < data; ++i) order.push_back(i);
  std::vector<HloSharding::Subgroup> kinds;
  std::vector<int64_t> sizes;
  for (HloSharding::Subgroup g : {HloSharding::Subgroup::kManual, HloSharding::Subgroup::kUnreduced,
                                  HloSharding::Subgroup::kReplicated}) {
    int64_t size = 1;
    for (size_t i = 0; i < s->subgroups.size(); ++i) {
      if (s->subgroups[i] != g) continue;
      order.push_back(data + i);
      size *= s->tile[data + i];
    }
    if (size == 1) continue;
    kinds.push_back(g);
    sizes.push_back(size);
  }
  if (Product(absl::MakeConstSpan(s->tile).first(data)) == 1 && kinds.size() <= 1) {
    // A single subgroup over all devices needs no tiles. Without any there is a single device.
    const HloSharding::Subgroup only =
        kinds.empty() ? HloSharding::Subgroup::kReplicated : kinds[0];
    s->kind = only == HloSharding::Subgroup::kManual      ? HloSharding::Kind::kManual
              : only == HloSharding::Subgroup::kUnreduced ? HloSharding::Kind::kUnreduced
                                                          : HloSharding::Kind::kReplicated;
    s->tile.clear();
    s->list.clear();
    s->reshape.clear();
    s->perm.clear();
    s->subgroups.clear();
    return;
  }
  Transpose(order, -1, s);
  // Subgroups of one kind are merged into one dim.
  std::vector<int64_t> tile(s->tile.begin(), s->tile.begin() + data);
  tile.insert(tile.end(), sizes.begin(), sizes.end());
  s->tile = std::move(tile);
  s->subgroups = std::move(kinds);
  if (!s->subgroups.empty() && s->subgroups.back() == HloSharding::Subgroup::kReplicated) {
    std::vector<size_t> same(s->tile.size());
    std::iota(same.begin(), same.end(), 0);
    Transpose(same, static_cast<int>(same.size()) - 1, s);
  }
}

std::string HloSharding::Print() const {
  std::string out = "{";
  if (kind == Kind::kTuple) {
    for (size_t i = 0; i < tuple.size(); ++i) {
      if (i > 0) out += ", ";
      if (i > 0 && i % 5 == 0) absl::StrAppend(&out, "/*index=", i, "*/");
      out += tuple[i].Print();
    }
    return out + "}";
  }
  switch (kind) {
    case Kind::kReplicated: out += "replicated"; break;
    case Kind::kManual: out += "manual"; break;
    case Kind::kUnreduced: out += "unreduced"; break;
    case Kind::kUnknown: out += "unknown"; break;
    case Kind::kMaximal:
      if (maximal_mesh) {
        absl::StrAppend(&out, "maximal_mesh[device_id=", device, "]");
      } else {
        absl::StrAppend(&out, "maximal device=", device);
      }
      break;
    case Kind::kTiled: AppendTiles(*this, &out); break;
    case Kind::kNamed: AppendNamed(named, list, &out); break;
    case Kind::kTuple: break;
  }
  if (group == GroupKind::kShardAs) absl::StrAppend(&out, " shard_as ", group_id);
  if (group == GroupKind::kShardLike) absl::StrAppend(&out, " shard_like ", group_id);
  const bool v3 = kind == Kind::kNamed || maximal_mesh;
  if (metadata.size() == 1 && !v3) {
    absl::StrAppend(&out, " metadata=", metadata[0]);
  } else if (!metadata.empty()) {
    absl::StrAppend(&out, v3 ? ", metadata={" : " metadata={", absl::StrJoin(metadata, ", "), "}");
  }
  return out + "}";
}

}  // namespace shardcall
