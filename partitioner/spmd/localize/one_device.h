// SPDX-License-Identifier: Apache-2.0
// What one device runs: a conditional on the partition id, whose branch without the op
// yields zeros, and a sum of the bits, which brings those of that device to all. No
// collective stands in a branch.
#ifndef SHARDCALL_PARTITIONER_SPMD_LOCALIZE_ONE_DEVICE_H_
#define SHARDCALL_PARTITIONER_SPMD_LOCALIZE_ONE_DEVICE_H_

#include <cstdint>
#include <vector>

#include "shardcall/partitioner/spmd/localize/localizer.h"

namespace shardcall {

class OneDeviceLocalizer {
 public:
  explicit OneDeviceLocalizer(Localizer* localizer) : l_(*localizer) {}
  // Stores the results of an op that one device runs.
  void Localize(const LocalOp& op);

 private:
  LocalIds RunWhole(const LocalOp& op);
  // Whether only ops that device runs alone read this result.
  bool StaysThere(InstrId id, int flat, int64_t device);
  InstrId IsThere(int64_t device, absl::Span<const AxisRef> free);

  Localizer& l_;
  std::vector<std::vector<InstrId>> users_;  // by instruction; made when first asked for
};

// Result `flat` of an op that `device` ran, on all devices. E210 above --max-reshard-bytes.
InstrId BroadcastResult(Localizer& l, InstrId id, int flat, InstrId value, int64_t device,
                        absl::Span<const AxisRef> free);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_SPMD_LOCALIZE_ONE_DEVICE_H_
