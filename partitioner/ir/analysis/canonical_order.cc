// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/canonical_order.h"

#include "shardcall/partitioner/ir/analysis/called_computations.h"

namespace shardcall {
inline namespace internal {

std::vector<uint32_t> CanonicalOrder(const Module& module) {
  const int n = module.num_instructions();
  std::vector<uint32_t> order(n, UINT32_MAX);
  std::vector<bool> entered(n, false);
  uint32_t next = 0;
  std::vector<InstrId> stack;
  const auto walk = [&](InstrId root) {
    stack.push_back(root);
    while (!stack.empty()) {
      const InstrId i = stack.back();
      if (entered[i.value]) {
        stack.pop_back();
        if (order[i.value] == UINT32_MAX) order[i.value] = next++;
        continue;
      }
      entered[i.value] = true;
      const Instruction& instr = module.instr(i);
      if (HasTrait(instr.opcode, kControlFlow)) {
        for (CompId c : CalledComputations(module, instr)) {
          const InstrId r = module.comp(c).root;
          if (r.valid() && !entered[r.value]) stack.push_back(r);
        }
      }
      const absl::Span<const InstrId> operands = module.operands(instr);
      for (size_t k = operands.size(); k-- > 0;) {
        if (!entered[operands[k].value]) stack.push_back(operands[k]);
      }
    }
  };
  const CompId entry = module.entry();
  if (entry.valid() && module.comp(entry).root.valid()) walk(module.comp(entry).root);
  if (entry.valid()) {
    for (InstrId i : module.comp(entry).instructions) {
      if (!entered[i.value]) walk(i);
    }
  }
  for (int i = 0; i < n; ++i) {
    if (!entered[i]) walk(InstrId(i));
  }
  return order;
}

}  // namespace internal
}  // namespace shardcall
