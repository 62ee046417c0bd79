// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lower/device_groups.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/attribute_names.h"
#include "shardcall/partitioner/ir/iota_groups.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/process_lock.h"

namespace shardcall {
inline namespace internal {

absl::Status DeviceGroups::Make(const LowerContext& context, const CollectiveAttrs& attrs,
                                DeviceGroups* out) {
  // Whether groups contain replica, partition or global ids depends on the channel and
  // use_global_device_ids; opcodes without that flag use partition ids if there is a channel.
  const Opcode opcode = context.instr.opcode;
  const bool has_flag = hlo_text::Allows(opcode, hlo_text::Attr::kUseGlobalDeviceIds);
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
    case ReplicaGroups::Form::kAll: break;
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
    case ReplicaGroups::Form::kMesh: {
      const auto lists = ListedGroups(groups, 0);
      if (!lists.has_value()) return context.Error("E311", "the mesh of the groups does not parse");
      out->form_ = ReplicaGroups::Form::kLists;
      out->lists_ = *lists;
      break;
    }
  }
  for (size_t k = 0; k < out->lists_.size(); ++k) {
    for (int64_t device : out->lists_[k]) out->list_of_.try_emplace(device, k);
  }
  return absl::OkStatus();
}

bool DeviceGroups::Of(int device, int count, std::vector<int>* group) const {
  group->clear();
  if (scope_ == Scope::kAlone) {
    *group = {device};
    return true;
  }
  if (scope_ == Scope::kAllPartitions || form_ == ReplicaGroups::Form::kAll ||
      (form_ == ReplicaGroups::Form::kLists && lists_.empty())) {
    group->resize(count);
    std::iota(group->begin(), group->end(), 0);
    return true;
  }
  if (form_ == ReplicaGroups::Form::kLists) {
    const auto found = list_of_.find(device);
    if (found == list_of_.end()) return false;
    for (int64_t rank : lists_[found->second]) {
      // What is no rank stays none.
      group->push_back(static_cast<int>(std::clamp<int64_t>(rank, -1, INT32_MAX)));
    }
    return true;
  }
  if (device >= num_groups_ * group_size_) return false;
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
    group->push_back(static_cast<int>(std::min<int64_t>(id, INT32_MAX)));
    if (id >= count && group_size_ > count) break;
  }
  return true;
}

std::unique_ptr<DeviceGroups::Table> DeviceGroups::MakeTable(int count) const {
  auto table = std::make_unique<Table>();
  table->count = count;
  table->places.resize(count);
  std::vector<int> group;
  for (int device = 0; device < count; ++device) {
    if (table->places[device].size >= 0 || !Of(device, count, &group)) continue;
    Table::Place place;
    place.first = static_cast<int64_t>(table->ranks.size());
    place.size = static_cast<int>(group.size());
    const auto lacking = std::find_if(group.begin(), group.end(),
                                      [&](int rank) { return rank < 0 || rank >= count; });
    place.fits = lacking == group.end();
    if (!place.fits) place.lacking = *lacking;
    table->ranks.insert(table->ranks.end(), group.begin(), group.end());
    table->places[device] = place;
    // The other members have this group, too, unless a list that stands earlier has them.
    for (int rank : group) {
      if (rank < 0 || rank >= count || table->places[rank].size >= 0) continue;
      const bool listed = scope_ == Scope::kListed && !lists_.empty();
      if (listed && list_of_.at(rank) != list_of_.at(device)) continue;
      table->places[rank] = place;
    }
  }
  return table;
}

const DeviceGroups::Table& DeviceGroups::TableFor(int count) const {
  const Table* latest = latest_.load(std::memory_order_acquire);
  if (latest != nullptr && latest->count == count) return *latest;
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  const auto made = std::find_if(tables_.begin(), tables_.end(),
                                 [&](const auto& table) { return table->count == count; });
  if (made != tables_.end()) return **made;
  tables_.push_back(MakeTable(count));
  latest_.store(tables_.back().get(), std::memory_order_release);
  return *tables_.back();
}

absl::Status DeviceGroups::Find(const StepRun& run, absl::Span<const int>* group,
                                bool* found) const {
  const int count = run.device().num_devices;
  const Table& table = TableFor(count);
  const Table::Place& place = table.places[run.device().device];
  *found = place.size >= 0;
  *group = absl::MakeConstSpan(table.ranks).subspan(place.first, std::max(place.size, 0));
  if (!place.fits) {
    return run.Error(
        "E312", absl::StrCat("the groups name device ", place.lacking, ", but the run has ", count,
                             count == 1 ? " device" : " devices"));
  }
  return absl::OkStatus();
}

std::vector<std::vector<std::vector<int>>> CollectiveGroups(const Module& module, int count) {
  std::vector<std::vector<std::vector<int>>> all;
  std::set<std::vector<std::vector<int>>> seen;
  const LowerOptions options;
  for (int k = 0; k < module.num_instructions(); ++k) {
    const Instruction& i = module.instr(InstrId(k));
    if (i.attrs->kind != AttrKind::kCollective) continue;
    DeviceGroups groups;
    if (!DeviceGroups::Make(LowerContext(module, options, InstrId(k)), i.as<CollectiveAttrs>(),
                            &groups)
             .ok()) {
      continue;
    }
    std::vector<std::vector<int>> lists;
    std::vector<bool> placed(count);
    std::vector<int> group;
    bool fits = true;
    for (int device = 0; fits && device < count; ++device) {
      if (placed[device] || !groups.Of(device, count, &group)) continue;
      for (int rank : group) {
        fits = fits && rank >= 0 && rank < count && !placed[rank];
        if (fits) placed[rank] = true;
      }
      if (group.size() > 1) lists.push_back(group);
    }
    if (fits && !lists.empty() && seen.insert(lists).second) all.push_back(std::move(lists));
  }
  return all;
}

}  // namespace internal
}  // namespace shardcall
