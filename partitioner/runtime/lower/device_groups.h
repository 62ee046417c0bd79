// SPDX-License-Identifier: Apache-2.0
// The replica groups of a collective in the text, and the group of a device. With one replica,
// replica ids must be 0 and all other ids are partitions.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_LOWER_DEVICE_GROUPS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_LOWER_DEVICE_GROUPS_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/attributes.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"

namespace shardcall {
inline namespace internal {

class DeviceGroups {
 public:
  // E310 for forms that name mesh axes.
  static absl::Status Make(const LowerContext& context, const CollectiveAttrs& attrs,
                           DeviceGroups* out);

  // The ranks of this device's group in order; `found` is false if it is in no group. E312 if the
  // groups name devices that the run lacks. All devices of a run get parts of one table, which
  // lives as long as this object.
  absl::Status Find(const StepRun& run, absl::Span<const int>* group, bool* found) const;
  // The same for any device of `count`, without that check and without the table. A group of an
  // iota form that cannot fit into `count` devices ends with the first one that is too large.
  bool Of(int device, int count, std::vector<int>* group) const;

 private:
  enum class Scope : uint8_t {
    kAlone,          // groups of replicas: this device only
    kAllPartitions,  // groups of replicas, each over all partitions
    kListed,         // groups of partitions
  };
  // The groups of all devices of runs on `count` devices.
  struct Table {
    struct Place {
      int64_t first = 0;  // in `ranks`
      int size = -1;      // -1: in no group
      bool fits = true;   // the run has all ranks of the group
      int lacking = 0;    // else the first one that it lacks
    };
    int count = 0;
    std::vector<int> ranks;
    std::vector<Place> places;  // by device
  };
  const Table& TableFor(int count) const;
  std::unique_ptr<Table> MakeTable(int count) const;

  Scope scope_ = Scope::kListed;
  ReplicaGroups::Form form_ = ReplicaGroups::Form::kAll;
  std::vector<std::vector<int64_t>> lists_;
  absl::flat_hash_map<int64_t, size_t> list_of_;  // device -> the first list that has it
  int64_t num_groups_ = 0, group_size_ = 0;
  std::vector<int64_t> reshape_, perm_;

  // Made when a device first asks, under the lock of the process. Nearly all programs run on one
  // number of devices.
  mutable std::atomic<const Table*> latest_{nullptr};
  mutable std::vector<std::unique_ptr<const Table>> tables_;
};

// The groups of all collectives of a program over `count` devices, without duplicates, for
// Communicator::PrepareGroups. Forms that cannot be run are skipped.
std::vector<std::vector<std::vector<int>>> CollectiveGroups(const Module& module, int count);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_LOWER_DEVICE_GROUPS_H_
