// SPDX-License-Identifier: Apache-2.0
// The replica groups of a collective in the text, and the group of a device. With one replica,
// replica ids must be 0 and all other ids are partitions.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_DEVICE_GROUPS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_DEVICE_GROUPS_H_

#include <vector>

#include "absl/status/status.h"
#include "shardcall/partitioner/ir/attributes.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"

namespace shardcall::inline internal {

class DeviceGroups {
 public:
  // E310 for forms that name mesh axes.
  static absl::Status Make(const LowerContext& context, const CollectiveAttrs& attrs,
                           DeviceGroups* out);

  // The ranks of this device's group in order; `found` is false if it is in no group. E312 if the
  // groups name devices that the run lacks.
  absl::Status Find(const StepRun& run, std::vector<int>* group, bool* found) const;
  // The same for any device of `count`, without that check.
  bool Of(int device, int count, std::vector<int>* group) const;

 private:
  enum class Scope : uint8_t {
    kAlone,          // groups of replicas: this device only
    kAllPartitions,  // groups of replicas, each over all partitions
    kListed,         // groups of partitions
  };
  Scope scope_ = Scope::kListed;
  ReplicaGroups::Form form_ = ReplicaGroups::Form::kAll;
  std::vector<std::vector<int64_t>> lists_;
  int64_t num_groups_ = 0, group_size_ = 0;
  std::vector<int64_t> reshape_, perm_;
};

// The groups of all collectives of a program over `count` devices, without duplicates, for
// Communicator::PrepareGroups. Forms that cannot be run are skipped.
std::vector<std::vector<std::vector<int>>> CollectiveGroups(const Module& module, int count);

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_DEVICE_GROUPS_H_
