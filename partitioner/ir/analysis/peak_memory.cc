// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/peak_memory.h"

#include <algorithm>
#include <vector>

namespace shardcall {
inline namespace internal {
namespace {

// Ops whose result shares the memory of their operands, or has none of its own.
bool IsView(Opcode opcode) { return HasTrait(opcode, kFree | kAliases); }

// The peak bytes that a computation holds beside its parameters and its root's value. `inner` has
// this for the computations before it; `last_use` must be zero, by instruction.
int64_t Temporaries(const Module& module, CompId comp, absl::FunctionRef<int64_t(InstrId)> bytes_of,
                    const std::vector<int64_t>& inner, std::vector<size_t>* last_use) {
  const absl::Span<const InstrId> order = module.comp(comp).instructions;
  std::vector<size_t>& last = *last_use;
  // A view keeps its operands alive.
  const size_t end = order.size();
  last[module.comp(comp).root.value] = end;
  for (size_t at = order.size(); at-- > 0;) {
    const bool view = IsView(module.instr(order[at]).opcode);
    const size_t until = view ? std::max(at, last[order[at].value]) : at;
    for (InstrId o : module.operands(order[at])) last[o.value] = std::max(last[o.value], until);
  }
  std::vector<int64_t> ends(order.size() + 1, 0);
  int64_t held = 0, most = 0;
  for (size_t at = 0; at < order.size(); ++at) {
    const Instruction& instr = module.instr(order[at]);
    int64_t within = 0;
    for (CompId called : CalledComputations(module, instr)) {
      within = std::max(within, inner[called.value]);
    }
    if (!IsView(instr.opcode) && last[order[at].value] < end) {
      const int64_t bytes = bytes_of(order[at]);
      held += bytes;
      ends[std::max(at, last[order[at].value])] += bytes;
    }
    most = std::max(most, held + within);
    held -= ends[at];
  }
  return most;
}

}  // namespace

int64_t PeakOfTemporaries(const Module& module, absl::FunctionRef<int64_t(InstrId)> bytes_of) {
  std::vector<int64_t> inner(module.num_computations(), 0);
  std::vector<size_t> last_use(module.num_instructions(), 0);
  for (CompId comp : ComputationPostOrder(module)) {
    inner[comp.value] = Temporaries(module, comp, bytes_of, inner, &last_use);
  }
  return inner[module.entry().value];
}

}  // namespace internal
}  // namespace shardcall
