// SPDX-License-Identifier: Apache-2.0
#include "partitioner/runtime/device_groups.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "partitioner/runtime/strided.h"

namespace shardcall {

absl::Status DeviceGroups::Make(const LowerContext& context, const CollectiveAttrs& attrs,
                                DeviceGroups* out) {
  // Which ids stand in the groups follows from channel and flag; opcodes that
  // have no flag use partitions as soon as there is a channel.
  const Opcode opcode = context.instr.opcode;
  const bool has_flag = opcode == Opcode::kAllReduce || opcode == Opcode::kAllReduceStart ||
                        opcode == Opcode::kAllGather || opcode == Opcode::kAllGatherStart ||
                        opcode == Opcode::kReduceScatter;
  if (attrs.channel_id < 0) {
    out->scope_ = Scope::kAlone;
  } else if (has_flag && !attrs.use_global_device_ids) {
    out->scope_ = Scope::kAllPartitions;
  } else {
    out->scope_ = Scope::kListed;
  }
  const ReplicaGroups& groups = attrs.groups;
  out->form_ = groups.form;
  switch (groups.form) {
    case ReplicaGroups::Form::kAll:
      break;
    case ReplicaGroups::Form::kLists:
      for (Ints list : groups.lists) out->lists_.emplace_back(list.begin(), list.end());
      break;
    case ReplicaGroups::Form::kIota:
      out->num_groups_ = groups.num_groups;
      out->group_size_ = groups.group_size;
      out->reshape_.assign(groups.reshape.begin(), groups.reshape.end());
      out->perm_.assign(groups.perm.begin(), groups.perm.end());
      if (out->perm_.empty()) {
        out->perm_.resize(out->reshape_.size());
        std::iota(out->perm_.begin(), out->perm_.end(), 0);
      }
      if (Product(out->reshape_) != out->num_groups_ * out->group_size_ ||
          out->perm_.size() != out->reshape_.size()) {
        return context.Error("E311", "the iota form of the groups does not add up");
      }
      break;
    case ReplicaGroups::Form::kMesh:
      return context.Unimplemented("groups that name mesh axes");
  }
  return absl::OkStatus();
}

absl::Status DeviceGroups::Find(const StepRun& run, std::vector<int>* group, bool* found) const {
  const int device = run.device().device, count = run.device().num_devices;
  group->clear();
  *found = true;
  if (scope_ == Scope::kAlone) {
    *group = {device};
    return absl::OkStatus();
  }
  if (scope_ == Scope::kAllPartitions || form_ == ReplicaGroups::Form::kAll ||
      (form_ == ReplicaGroups::Form::kLists && lists_.empty())) {
    group->resize(count);
    std::iota(group->begin(), group->end(), 0);
    return absl::OkStatus();
  }
  *found = false;
  if (form_ == ReplicaGroups::Form::kLists) {
    for (const std::vector<int64_t>& list : lists_) {
      if (std::find(list.begin(), list.end(), device) == list.end()) continue;
      group->assign(list.begin(), list.end());
      *found = true;
      break;
    }
  } else if (device < num_groups_ * group_size_) {
    // The k-th entry of the flat list is iota(reshape) transposed by perm.
    const Dims strides = RowMajorStrides(reshape_);
    Dims transposed;
    for (int64_t p : perm_) transposed.push_back(reshape_[p]);
    const Dims flat = RowMajorStrides(transposed);
    int64_t position = 0;
    for (size_t k = 0; k < perm_.size(); ++k) {
      position += device / strides[perm_[k]] % reshape_[perm_[k]] * flat[k];
    }
    const int64_t first = position / group_size_ * group_size_;
    for (int64_t i = first; i < first + group_size_; ++i) {
      int64_t id = 0;
      for (size_t k = 0; k < perm_.size(); ++k) {
        id += i / flat[k] % transposed[k] * strides[perm_[k]];
      }
      group->push_back(static_cast<int>(id));
    }
    *found = true;
  }
  for (int rank : *group) {
    if (rank < 0 || rank >= count) {
      return run.Error("E312", absl::StrCat("the groups name device ", rank, ", but the run has ",
                                            count, count == 1 ? " device" : " devices"));
    }
  }
  return absl::OkStatus();
}

}  // namespace shardcall
