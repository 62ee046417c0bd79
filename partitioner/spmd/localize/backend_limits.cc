// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/spmd/localize/backend_limits.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/attribute_names.h"
#include "shardcall/partitioner/ir/iota_groups.h"
#include "shardcall/partitioner/ir/shapes/collective_bytes.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

using DeviceLists = std::vector<std::vector<int64_t>>;

bool AreEven(const DeviceLists& lists) {
  return absl::c_all_of(lists, [&](const auto& list) { return list.size() == lists[0].size(); });
}

// Whether the lists are an iota, all in a row.
bool AreGrid(const DeviceLists& lists, int64_t devices) {
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& list : lists) all.insert(all.end(), list.begin(), list.end());
  if (static_cast<int64_t>(all.size()) != devices) return false;
  const absl::StatusOr<DeviceOrder> order = DeviceOrder::List(std::move(all));
  return order.ok() && order->is_iota();
}

}  // namespace

bool RunsOver(const BackendLimits& backend, const ReplicaGroups& groups, int64_t devices) {
  const bool iota =
      groups.form == ReplicaGroups::Form::kAll || groups.form == ReplicaGroups::Form::kIota;
  if (backend.groups == GroupForm::kAny || iota) return true;
  const auto lists = ListedGroups(groups, devices);
  if (!lists.has_value() || lists->empty()) return true;  // the verifier's to refuse
  return AreEven(*lists) && (backend.groups == GroupForm::kEven || AreGrid(*lists, devices));
}

ReplicaGroups AllDevices(Arena& arena, int64_t devices) {
  ReplicaGroups groups;
  groups.form = ReplicaGroups::Form::kIota;
  groups.num_groups = 1;
  groups.group_size = devices;
  groups.reshape = arena.Copy(absl::MakeConstSpan(&devices, 1));
  return groups;
}

std::optional<ReplicaGroups> DeviceGroupsOf(const Module& module, const Instruction& collective,
                                            int64_t devices) {
  const auto& attrs = collective.as<CollectiveAttrs>();
  if (module.header.replica_count != 1 || attrs.channel_id < 0) return std::nullopt;
  Arena& arena = module.context().arena();
  // Without global ids the groups are of replicas, with all partitions of each.
  const bool has_ids = hlo_text::Allows(collective.opcode, hlo_text::Attr::kUseGlobalDeviceIds);
  const bool all = attrs.groups.form == ReplicaGroups::Form::kAll;
  if (all || (has_ids && !attrs.use_global_device_ids)) return AllDevices(arena, devices);
  const auto without = WithoutMeshAxes(attrs.groups, arena);
  if (!without.has_value()) return std::nullopt;
  ReplicaGroups out = *without;
  if (out.form == ReplicaGroups::Form::kIota) return out;
  const auto lists = ListedGroups(out, devices);
  if (!lists.has_value() || lists->empty() || !AreEven(*lists)) return std::nullopt;
  out.num_groups = static_cast<int64_t>(lists->size());
  out.group_size = static_cast<int64_t>((*lists)[0].size());
  return out;
}

absl::Status CheckCollectives(const Module& module, const BackendLimits& backend, int64_t devices) {
  if (backend.has_all()) return absl::OkStatus();
  for (int k = 0; k < module.num_instructions(); ++k) {
    const Instruction& i = module.instr(InstrId(k));
    const std::optional<Collective> kind = CollectiveOf(i.opcode);
    if (!kind.has_value()) continue;
    const bool in_groups = i.attrs->kind == AttrKind::kCollective;
    const bool has = backend.Has(*kind);
    if (has && (!in_groups || RunsOver(backend, i.as<CollectiveAttrs>().groups, devices))) {
      continue;
    }
    return ToStatus(
        {.code = "E214",
         .message = "the program has a collective that the backend does not run, and nothing is "
                    "known to stand for it",
         .where = absl::StrCat("%", i.name),
         .expected = has ? absl::StrCat("groups that are ", GroupFormName(backend.groups))
                         : absl::StrCat("of ", CollectivesText(backend)),
         .found = has ? absl::StrCat(CollectiveName(*kind), " over other groups")
                      : std::string(CollectiveName(*kind)),
         .fix = "Write it with collectives that the backend has, or correct collectives= and "
                "groups= of --cost"});
  }
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
