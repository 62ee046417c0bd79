// SPDX-License-Identifier: Apache-2.0
// Collectives between the devices of a call, over axes of its mesh.
#include <string>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/spmd/callbacks/callback_context.h"
#include "shardcall/partitioner/spmd/localize/group_collectives.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/reshard/links.h"

namespace shardcall {
inline namespace internal {
namespace {

using Dims = absl::InlinedVector<int64_t, 8>;

}  // namespace

absl::StatusOr<LocalValue> CallbackContext::AxisIndex(Axes axes) {
  SHARDCALL_RETURN_IF_ERROR(CheckAxes(axes));
  return LocalValue{ops_.emitter().Coordinate(view_.mesh, axes)};
}

absl::StatusOr<LocalValue> CallbackContext::AllReduce(LocalValue x, PartialOp op, Axes axes) {
  SHARDCALL_RETURN_IF_ERROR(Check(x, axes));
  SHARDCALL_RETURN_IF_ERROR(CheckReduction(x, op));
  if (AxesSize(axes) == 1) return x;
  if (!EngineReduces(op, ops_.builder().type(x.id)) || LacksSome()) {
    ops_.emitter().set_cause(cause_);
    return LocalValue{ops_.emitter().AllReduce(x.id, axes, op)};
  }
  const ReplicaGroups& groups = ops_.emitter().Groups(axes);
  return Collective(builder_.AllReduce(x.id, groups, NextChannel(), MonoidOf(op)), groups);
}

absl::StatusOr<LocalValue> CallbackContext::AllGather(LocalValue x, int dim, Axes axes) {
  SHARDCALL_RETURN_IF_ERROR(Check(x, axes, dim));
  if (AxesSize(axes) == 1) return x;
  if (LacksSome()) {
    ops_.emitter().set_cause(cause_);
    return LocalValue{ops_.emitter().AllGather(x.id, dim, axes)};
  }
  const ReplicaGroups& groups = ops_.emitter().Groups(axes);
  return Collective(builder_.AllGather(x.id, dim, groups, NextChannel()), groups);
}

absl::StatusOr<LocalValue> CallbackContext::ReduceScatter(LocalValue x, int dim, PartialOp op,
                                                          Axes axes) {
  SHARDCALL_RETURN_IF_ERROR(Check(x, axes, dim, AxesSize(axes)));
  SHARDCALL_RETURN_IF_ERROR(CheckReduction(x, op));
  if (AxesSize(axes) == 1) return x;
  if (!EngineReduces(op, ops_.builder().type(x.id)) || LacksSome()) {
    ops_.emitter().set_cause(cause_);
    return LocalValue{ops_.emitter().ReduceScatter(x.id, dim, axes, op)};
  }
  const ReplicaGroups& groups = ops_.emitter().Groups(axes);
  return Collective(builder_.ReduceScatter(x.id, dim, groups, NextChannel(), MonoidOf(op)), groups);
}

absl::StatusOr<LocalValue> CallbackContext::AllToAll(LocalValue x, int split, int join, Axes axes) {
  const int64_t m = AxesSize(axes);
  SHARDCALL_RETURN_IF_ERROR(Check(x, axes, split, m));
  SHARDCALL_RETURN_IF_ERROR(Check(x, axes, join));
  if (m == 1) return x;
  if (split == join) return Exchanged(x, split, axes);
  const Shape* shape = ops_.builder().shape(x.id);
  Dims cut, permutation, merged;
  for (int d = 0; d < shape->rank(); ++d) {
    if (d == split) cut.push_back(m);
    cut.push_back(d == split ? shape->dim(d) / m : shape->dim(d));
    merged.push_back(d == split  ? shape->dim(d) / m
                     : d == join ? m * shape->dim(d)
                                 : shape->dim(d));
  }
  const int join_at = join < split ? join : join + 1;  // in `cut`
  for (int d = 0; d <= shape->rank(); ++d) {
    if (d == join_at) permutation.push_back(split);
    if (d != split) permutation.push_back(d);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId blocks, builder_.Reshape(x.id, cut));
  SHARDCALL_ASSIGN_OR_RETURN(const LocalValue moved, Exchanged({blocks}, split, axes));
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId turned, builder_.Transpose(moved.id, permutation));
  return Made(builder_.Reshape(turned, merged));
}

absl::StatusOr<LocalValue> CallbackContext::CollectivePermute(
    LocalValue x, Axes axes, absl::Span<const std::pair<int64_t, int64_t>> pairs) {
  SHARDCALL_RETURN_IF_ERROR(Check(x, axes));
  const int64_t m = AxesSize(axes);
  std::vector<bool> sent(m), received(m);
  for (const auto& [from, to] : pairs) {
    if (from < 0 || to < 0 || from >= m || to >= m || sent[from] || received[to]) {
      return view_.Misfit("a permute names a device that does not exist, or twice",
                          absl::StrCat("sources and targets in [0,", m, "), each once"),
                          absl::StrCat("(", from, ",", to, ")"));
    }
    sent[from] = received[to] = true;
  }
  std::vector<int64_t> sources, targets;
  for (const std::vector<int64_t>& group : GroupsAsLists(*view_.mesh, axes)) {
    for (const auto& [from, to] : pairs) {
      sources.push_back(group[from]);
      targets.push_back(group[to]);
    }
  }
  ops_.emitter().set_cause(cause_);
  if (LacksSome()) {
    return LocalValue{
        SendPairs(ops_.emitter(), x.id, sources, targets, &ops_.emitter().Groups(axes))};
  }
  SHARDCALL_ASSIGN_OR_RETURN(
      const LocalValue y, Made(builder_.CollectivePermute(x.id, sources, targets, NextChannel())));
  ops_.emitter().Record(y.id, view_.mesh->num_devices(), 1);
  return y;
}

absl::StatusOr<LocalValue> CallbackContext::Reshard(LocalValue x, const Shape* global,
                                                    const Sharding* from, const Sharding* to) {
  SHARDCALL_RETURN_IF_ERROR(CheckValue(x));
  if (global == nullptr || !global->IsArray()) {
    return view_.Misfit("a reshard is asked for without a global shape", "an array's", "none");
  }
  SHARDCALL_ASSIGN_OR_RETURN(from, view_.Checked(from, global, "the value to reshard"));
  SHARDCALL_ASSIGN_OR_RETURN(to, view_.Checked(to, global, "the value to reshard"));
  SHARDCALL_RETURN_IF_ERROR(CheckWhole(to));
  SHARDCALL_RETURN_IF_ERROR(CheckShard(x, global, from, "the value to reshard"));
  return LocalValue{ops_.ReshardInCall(cause_, x.id, global, from, to)};
}

bool CallbackContext::LacksSome() const { return !ops_.context().Get<Links>().backend().has_all(); }

absl::StatusOr<LocalValue> CallbackContext::Exchanged(LocalValue x, int split, Axes axes) {
  const ReplicaGroups& groups = ops_.emitter().Groups(axes);
  if (LacksSome()) {
    ops_.emitter().set_cause(cause_);
    return LocalValue{GroupCollectives(ops_.emitter(), groups).AllToAll(x.id, split)};
  }
  return Collective(builder_.AllToAll(x.id, split, groups, NextChannel()), groups);
}

absl::StatusOr<LocalValue> CallbackContext::Made(absl::StatusOr<InstrId> id) const {
  if (!id.ok()) return view_.Misfit(std::string(id.status().message()), "", "");
  return LocalValue{*id};
}

absl::StatusOr<LocalValue> CallbackContext::Collective(absl::StatusOr<InstrId> id,
                                                       const ReplicaGroups& groups) {
  SHARDCALL_ASSIGN_OR_RETURN(const LocalValue x, Made(std::move(id)));
  ops_.emitter().set_cause(cause_);
  ops_.emitter().Record(x.id, groups.group_size, groups.num_groups);
  return x;
}

}  // namespace internal
}  // namespace shardcall
