// SPDX-License-Identifier: Apache-2.0
// The one answer to whether an instruction must stay although nothing reads it.
#ifndef SHARDCALL_PARTITIONER_IR_SIDE_EFFECTS_H_
#define SHARDCALL_PARTITIONER_IR_SIDE_EFFECTS_H_

#include <cstdint>
#include <vector>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {

enum class EffectsAt : uint8_t {
  kPartitioning,  // members of sharding groups and InspectSharding have one, too
  kRunning,
};

// By itself: its callees are not looked at. A constraint or a manual boundary says nothing
// where nobody reads it, whatever flag it carries.
bool HasSideEffect(const Instruction& instr, EffectsAt at);

// Those of callees, too. The module must outlive it, and does not change.
class Effects {
 public:
  Effects(const Module& module, EffectsAt at);
  bool Has(const Instruction& instr) const;
  bool Has(CompId comp) const { return comps_[comp.value]; }

 private:
  const Module& m_;
  const EffectsAt at_;
  std::vector<bool> comps_;
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_SIDE_EFFECTS_H_
