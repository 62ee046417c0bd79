// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/memory/leaf_lifetimes.h"

#include <algorithm>
#include <optional>

#include "shardcall/partitioner/ir/memory/latency_hiding.h"
#include "shardcall/partitioner/ir/memory/list_order.h"
#include "shardcall/partitioner/ir/memory/run_order.h"
#include "shardcall/partitioner/ir/memory/run_steps.h"

namespace shardcall {
inline namespace internal {
namespace {

// Uses of a part of a tuple, and of none of its other parts.
bool UsesLeafByLeaf(const Instruction& i) {
  return i.opcode == Opcode::kGetTupleElement || i.opcode == Opcode::kTuple ||
         i.opcode == Opcode::kWhile;
}

}  // namespace

LeafLifetimes::LeafLifetimes(const Module& m, const MemoryRules& rules)
    : m_(m),
      fusion_(FindFusedOps(m, rules)),
      place_(m.num_instructions()),
      first_(m.num_instructions()),
      last_reader_(m.num_instructions()),
      last_recomputed_(m.num_instructions()),
      started_(m.num_instructions()) {
  int leaves = 0;
  for (int k = 0; k < m.num_instructions(); ++k) {
    first_[k] = leaves;
    leaves += m.instr(InstrId(k)).shape->num_leaves();
  }
  uses_.resize(leaves);
  for (int c = 0; c < m.num_computations(); ++c) {
    FindOrder(CompId(c), rules);
    const absl::Span<const InstrId> order = OrderOf(CompId(c));
    for (size_t at = 0; at < order.size(); ++at) place_[order[at].value] = static_cast<int>(at);
    FindUses(CompId(c));
  }
}

void LeafLifetimes::FindOrder(CompId c, const MemoryRules& rules) {
  switch (rules.order) {
    case RunOrder::kOfProgram: return;
    case RunOrder::kBreadthFirst: order_.push_back(BreadthFirstOrder(m_, c, fusion_)); return;
    case RunOrder::kList: {
      const RunSteps steps(m_, c, fusion_);
      order_.push_back(
          steps.InOrder(HideLatencies(m_, steps, ListOrder(m_, steps), rules.seconds, &started_)));
      return;
    }
  }
}

void LeafLifetimes::FindUses(CompId c) {
  const absl::Span<const InstrId> order = OrderOf(c);
  const int end = static_cast<int>(order.size());
  const InstrId root = m_.comp(c).root;
  for (int k = 0; k < m_.instr(root).shape->num_leaves(); ++k) Use({root, k}, end, end);
  // In an order of its own, what is computed on the way to an op may stand behind it: another pass
  // tells what that reads.
  const int passes = order_.empty() ? 1 : 2;
  for (int pass = 0; pass < passes; ++pass) {
    for (int at = end; at-- > 0;) UseOperands(order[at], at);
  }
}

void LeafLifetimes::Use(ValueLeaf leaf, int last, int last_beside_loops) {
  Uses& uses = uses_[NumberOf(leaf)];
  uses.last = std::max(uses.last, last);
  uses.last_beside_loops = std::max(uses.last_beside_loops, last_beside_loops);
}

void LeafLifetimes::UseOperands(InstrId id, int place) {
  const Instruction& i = m_.instr(id);
  const bool loop = i.opcode == Opcode::kWhile;
  int until = std::max(place, last_recomputed_[id.value]);
  for (int k = 0; k < i.shape->num_leaves(); ++k) {
    const Uses& uses = uses_[NumberOf({id, k})];
    if (const std::optional<ValueLeaf> viewed = ViewedLeaf(m_, {id, k})) {
      Use(*viewed, std::max(place, uses.last), loop ? place : uses.last_beside_loops);
    } else if (!HasOwnMemory(id)) {  // what stands for its operands keeps them
      until = std::max(until, uses.last);
    }
  }
  for (const InstrId o : m_.operands(id)) {
    int& reader = last_reader_[o.value];
    reader = std::max({reader, place, loop ? last_reader_[id.value] : 0});
    if (UsesLeafByLeaf(i)) continue;
    if (fusion_.recomputed[o.value] && fusion_.takes[id.value]) {
      last_recomputed_[o.value] = std::max(last_recomputed_[o.value], until);
      continue;
    }
    for (int k = 0; k < m_.instr(o).shape->num_leaves(); ++k) Use({o, k}, until, until);
  }
}

}  // namespace internal
}  // namespace shardcall
