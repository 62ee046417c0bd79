// SPDX-License-Identifier: Apache-2.0
// Decides whether an instruction must stay although nothing uses its result, and which act by
// their effects alone.
#ifndef SHARDCALL_PARTITIONER_IR_ANALYSIS_SIDE_EFFECTS_H_
#define SHARDCALL_PARTITIONER_IR_ANALYSIS_SIDE_EFFECTS_H_

#include <cstdint>
#include <vector>

#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

enum class EffectsAt : uint8_t {
  kPartitioning,  // annotations, sharding group members and InspectSharding count, too
  kRunning,
};

// Whether the op's results follow from its operands and attributes alone, and nothing else happens:
// two equal ones are one. Not so for ops that run computations, which may have effects.
bool IsPure(Opcode opcode);

// For the instruction alone, without its callees. An unused manual boundary has no effect, even if
// its has_side_effect is set, nor has an annotation when the program runs.
bool HasSideEffect(const Instruction& instr, EffectsAt at);

// False for nothing, tokens, and tuples of them.
bool HasArray(const Shape* shape);
bool ResultsInArray(const Instruction& instr);

// Whether each device makes this call, with its shards of the operands, however these are sharded
// and whatever device an annotation names. XLA does the same for
// jax.debug.print(partitioned=True).
bool RunsOnShards(const Instruction& instr);

// Includes effects of callees. The module must outlive this object and not change.
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

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_ANALYSIS_SIDE_EFFECTS_H_
