// SPDX-License-Identifier: Apache-2.0
// nccl_allreduce communicates between devices, so it needs a program that says what each device
// holds: a manual region, over the manual axes. Along the other axes it may be sharded as any
// elementwise op.
//
// Its gradient: each device's result is a separate value with a cotangent of its own, and every
// result depends on every operand of the group. So the operand's gradient is the sum of the group's
// cotangents, which is the same all-reduce. This is the transpose of jax.lax.psum where values are
// not known to be replicated (shard_map with check_vma=False). With check_vma=True, the result of
// psum is one replicated value, and JAX passes its cotangent on unchanged. Here a program that uses
// the result of one device only must set the cotangents of the others to zero. Max, min and product
// have no VJP here.
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/attributes.h"
#include "shardcall/partitioner/custom_call/rule_callbacks.h"
#include "shardcall/partitioner/custom_call/targets/shipped_targets.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status Outside(const CustomCallView& call, std::string expected, std::string found) {
  return ToStatus({.code = "E122",
                   .message = absl::StrCat("target \"", call.target, "\" (%", call.instruction,
                                           ") reduces over devices that are not manual here"),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = "Call it in a region (shard_map) that is manual over the axes its "
                          "groups span, or use a sharded reduction of the program"});
}

// E122 unless the devices of each group differ in manual axes only.
absl::Status CheckGroups(const CustomCallView& call) {
  const BaseMesh& mesh = *call.mesh;
  const AxisList free = Complement(mesh, call.manual_axes);
  if (free.empty()) return absl::OkStatus();
  SHARDCALL_ASSIGN_OR_RETURN(const AttributeMapView attributes,
                             AttributeMapView::Parse(call.backend_config));
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                             attributes.GetInts("replica_groups", {}));
  SHARDCALL_ASSIGN_OR_RETURN(const int64_t size, attributes.GetInt("group_size", 0));
  if (ids.empty()) {
    return Outside(call, "replica_groups, since not all axes are manual", "none");
  }
  const int64_t members = size > 0 ? size : static_cast<int64_t>(ids.size());
  std::vector<int64_t> position(mesh.num_devices());
  for (int64_t p = 0; p < mesh.num_devices(); ++p) position[mesh.order().DeviceAt(p)] = p;
  int64_t common = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= mesh.num_devices()) {
      return Outside(call, absl::StrCat("devices below ", mesh.num_devices()),
                     absl::StrCat(ids[i]));
    }
    const int64_t at = mesh.Coordinate(free, position[ids[i]]);
    if (i % members == 0) common = at;
    if (at != common) {
      return Outside(
          call, "groups of devices that differ in manual axes alone",
          absl::StrCat("devices ", ids[i / members * members], " and ", ids[i], " in one group"));
    }
  }
  return absl::OkStatus();
}

bool IsSum(absl::string_view config) {
  const auto attributes = AttributeMapView::Parse(config);
  return attributes.ok() && attributes->GetString("op", "sum").value_or("") == "sum";
}

absl::StatusOr<std::vector<InstrId>> AllReduce(LocalCall& call,
                                               absl::Span<const InstrId> operands) {
  SHARDCALL_RETURN_IF_ERROR(CheckGroups(call.call()));
  return call.CallTarget(operands);
}

}  // namespace

absl::Status RegisterCollectiveTargets(TargetRegistry& registry) {
  SHARDCALL_RETURN_IF_ERROR(RegisterRuleWithBody(
      registry, "nccl_allreduce", {{.text = {.rule = "... -> ..."}, .types = "T -> T"}}, AllReduce,
      "built in"));
  return registry.RegisterVjp("nccl_allreduce", {.target = "nccl_allreduce",
                                                 .arguments = {VjpArgument::Cotangent(0)},
                                                 .gradients = {0},
                                                 .applies = IsSum});
}

}  // namespace internal
}  // namespace shardcall
