// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/iota_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "shardcall/sharding/convert/mesh_set.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall {
inline namespace internal {
namespace {

// Whether SimplifiedIota would change nothing: most groups are simplified already and need no copy.
bool IsSimplified(absl::Span<const int64_t> dims, absl::Span<const int64_t> perm) {
  if (perm.empty()) return dims.size() == 1;
  for (size_t k = 1; k < perm.size(); ++k) {
    if (perm[k] == perm[k - 1] + 1) return false;
  }
  return perm.size() > 1 && !absl::c_linear_search(dims, 1);
}

}  // namespace

bool IsIota(absl::Span<const int64_t> dims, absl::Span<const int64_t> perm, int64_t devices) {
  int64_t product = 1;
  bool ok = !dims.empty() && (perm.empty() || perm.size() == dims.size());
  for (int64_t d : dims) ok = ok && d > 0 && !__builtin_mul_overflow(product, d, &product);
  absl::InlinedVector<bool, 8> seen(dims.size(), false);
  for (int64_t p : perm) {
    ok = ok && p >= 0 && p < static_cast<int64_t>(dims.size()) && !seen[p];
    if (ok) seen[p] = true;
  }
  return ok && product == devices;
}

IotaForm SimplifiedIota(absl::Span<const int64_t> dims, absl::Span<const int64_t> perm) {
  // Dims that are adjacent before and after the permutation are merged.
  absl::InlinedVector<std::pair<int64_t, int64_t>, 8> runs;  // first dim, product of sizes
  int64_t last = -2;
  for (int64_t p : perm) {
    if (dims[p] == 1) continue;
    bool adjacent = !runs.empty() && last < p;
    for (int64_t d = last + 1; adjacent && d < p; ++d) adjacent = dims[d] == 1;
    if (adjacent) {
      runs.back().second *= dims[p];
    } else {
      runs.push_back({p, dims[p]});
    }
    last = p;
  }
  if (runs.empty()) runs.push_back({0, 1});
  auto sorted = runs;
  std::sort(sorted.begin(), sorted.end());
  IotaForm out;
  for (const auto& run : sorted) out.dims.push_back(run.second);
  if (runs.size() == 1) return out;
  for (const auto& run : runs) {
    out.perm.push_back(std::lower_bound(sorted.begin(), sorted.end(), run) - sorted.begin());
  }
  return out;
}

ReplicaGroups Simplified(const ReplicaGroups& groups, Arena& arena) {
  int64_t devices = 0;
  if (groups.form != ReplicaGroups::Form::kIota ||
      __builtin_mul_overflow(groups.num_groups, groups.group_size, &devices)) {
    return groups;
  }
  const Ints dims = groups.reshape;
  if (!IsIota(dims, groups.perm, devices) || IsSimplified(dims, groups.perm)) return groups;
  absl::InlinedVector<int64_t, 8> perm(groups.perm.begin(), groups.perm.end());
  if (perm.empty()) {
    perm.resize(dims.size());
    std::iota(perm.begin(), perm.end(), int64_t{0});
  }
  const IotaForm form = SimplifiedIota(dims, perm);
  ReplicaGroups out = groups;
  out.reshape = arena.Copy(absl::MakeConstSpan(form.dims));
  out.perm = arena.Copy(absl::MakeConstSpan(form.perm));
  return out;
}

absl::optional<ReplicaGroups> WithoutMeshAxes(const ReplicaGroups& groups, Arena& arena) {
  if (groups.form != ReplicaGroups::Form::kMesh) return groups;
  // `mesh['a'=2] {'a'}`: read as a sharding of one dimension by these axes.
  const absl::string_view text = groups.mesh_text;
  const size_t brace = text.rfind('{');
  if (brace == absl::string_view::npos) return absl::nullopt;
  const absl::string_view mesh = absl::StripTrailingAsciiWhitespace(text.substr(0, brace));
  const absl::StatusOr<HloSharding> sharding =
      ParseHloSharding(absl::StrCat("{", mesh, ", [", text.substr(brace), "]}"));
  if (!sharding.ok() || sharding->kind != HloSharding::Kind::kNamed) return absl::nullopt;
  Context scratch;  // of the mesh alone
  MeshCollector collector;
  if (!collector.AddTiling(*sharding).ok()) return absl::nullopt;
  const absl::StatusOr<MeshSet> meshes = collector.Finish(scratch);
  if (!meshes.ok()) return absl::nullopt;
  const absl::StatusOr<ShardingConstraint> constraint = meshes->FromHlo(*sharding, 1);
  if (!constraint.ok()) return absl::nullopt;
  const AxisList& axes = constraint->dims[0].axes;
  ReplicaGroups out;
  IotaGroups iota;
  if (GroupsAsIota(*constraint->mesh, axes, &iota)) {
    out.form = ReplicaGroups::Form::kIota;
    out.num_groups = iota.num_groups;
    out.group_size = iota.group_size;
    out.reshape = arena.Copy(absl::MakeConstSpan(iota.reshape));
    out.perm = arena.Copy(absl::MakeConstSpan(iota.perm));
    return Simplified(out, arena);
  }
  std::vector<Ints> lists;
  for (const std::vector<int64_t>& group : GroupsAsLists(*constraint->mesh, axes)) {
    lists.push_back(arena.Copy(absl::MakeConstSpan(group)));
  }
  out.form = ReplicaGroups::Form::kLists;
  out.lists = arena.Copy(absl::MakeConstSpan(lists));
  return out;
}

absl::optional<std::vector<std::vector<int64_t>>> ListedGroups(const ReplicaGroups& groups,
                                                               int64_t devices) {
  std::vector<std::vector<int64_t>> lists;
  switch (groups.form) {
    case ReplicaGroups::Form::kAll:
      lists.emplace_back(devices);
      std::iota(lists[0].begin(), lists[0].end(), 0);
      return lists;
    case ReplicaGroups::Form::kLists:
      for (Ints list : groups.lists) lists.emplace_back(list.begin(), list.end());
      return lists;
    case ReplicaGroups::Form::kIota: {
      const absl::StatusOr<DeviceOrder> order = DeviceOrder::Iota(groups.reshape, groups.perm);
      if (!order.ok() || order->num_devices() != groups.num_groups * groups.group_size) {
        return absl::nullopt;
      }
      for (int64_t g = 0; g < groups.num_groups; ++g) {
        lists.emplace_back();
        for (int64_t k = 0; k < groups.group_size; ++k) {
          lists.back().push_back(order->DeviceAt(g * groups.group_size + k));
        }
      }
      return lists;
    }
    case ReplicaGroups::Form::kMesh: {
      Arena scratch;
      const absl::optional<ReplicaGroups> plain = WithoutMeshAxes(groups, scratch);
      return plain.has_value() ? ListedGroups(*plain, devices) : absl::nullopt;
    }
  }
  return absl::nullopt;
}

}  // namespace internal
}  // namespace shardcall
