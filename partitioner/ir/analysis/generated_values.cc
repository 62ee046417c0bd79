// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/generated_values.h"

#include <cstdint>

namespace shardcall {
inline namespace internal {
namespace {

// Ops that are run once more for a part. What takes more may be cheaper to send.
constexpr int64_t kMostOps = 32;

bool MayBeGenerated(const Instruction& i) {
  if (!i.shape->IsArray() || i.shape->IsDynamic()) return false;
  if (i.opcode == Opcode::kConstant) return i.shape->rank() == 0;
  if (i.opcode == Opcode::kIota || i.opcode == Opcode::kBroadcast) return true;
  return HasTrait(i.opcode, kElementwise) && !HasTrait(i.opcode, kDrawsNumbers | kSideEffect) &&
         i.operand_count > 0;
}

}  // namespace

std::vector<bool> GeneratedValues(const Module& module) {
  std::vector<bool> out(module.num_instructions(), false);
  std::vector<int64_t> ops(module.num_instructions(), 0);
  for (int c = 0; c < module.num_computations(); ++c) {
    for (InstrId id : module.comp(CompId(c)).instructions) {
      const Instruction& i = module.instr(id);
      if (!MayBeGenerated(i)) continue;
      int64_t count = 1;
      bool all = true;
      for (InstrId o : module.operands(i)) {
        all = all && out[o.value];
        count += ops[o.value];
      }
      ops[id.value] = count;
      out[id.value] = all && count <= kMostOps;
    }
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
