// SPDX-License-Identifier: Apache-2.0
// Ops with a maximal sharding, which one device runs: a conditional on the partition id, whose
// other branch yields zeros, and an all-reduce of the bits, which broadcasts the results. Branches
// contain no collectives.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_ONE_DEVICE_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_ONE_DEVICE_H_

#include <cstdint>
#include <vector>

#include "shardcall/partitioner/spmd/localize/localizer.h"

namespace shardcall {
inline namespace internal {

class OneDeviceLocalizer {
 public:
  explicit OneDeviceLocalizer(Localizer* localizer) : l_(*localizer), ops_(localizer->ops()) {}
  // Stores the results of an op that one device runs.
  void Localize(const LocalOp& op);

 private:
  LocalIds RunWhole(const LocalOp& op);
  // Whether this result is read only by ops that run on the same device.
  bool StaysThere(InstrId id, int flat, int64_t device);
  InstrId IsThere(int64_t device, absl::Span<const AxisRef> free);

  Localizer& l_;
  OpBuilder& ops_;
  std::vector<std::vector<InstrId>> users_;  // by instruction; computed on first use
};

// Broadcasts result `flat` of an op that `device` ran to all devices. E210 above
// --max-reshard-bytes.
InstrId BroadcastResult(OpBuilder& ops, InstrId id, int flat, InstrId value, int64_t device,
                        absl::Span<const AxisRef> free);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_ONE_DEVICE_H_
