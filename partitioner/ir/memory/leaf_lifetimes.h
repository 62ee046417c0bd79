// SPDX-License-Identifier: Apache-2.0
// In which order the instructions of a module run, and how long the leaves of their results are
// used. Places are those in the order of a computation.
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_LEAF_LIFETIMES_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_LEAF_LIFETIMES_H_

#include <vector>

#include "absl/types/span.h"
#include "shardcall/partitioner/ir/memory/fused_ops.h"
#include "shardcall/partitioner/ir/memory/leaf_views.h"
#include "shardcall/partitioner/ir/memory/memory_rules.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

class LeafLifetimes {
 public:
  // Both must outlive it.
  LeafLifetimes(const Module& m, const MemoryRules& rules);

  absl::Span<const InstrId> OrderOf(CompId c) const {
    return order_.empty() ? absl::MakeConstSpan(m_.comp(c).instructions) : order_[c.value];
  }
  int PlaceOf(InstrId id) const { return place_[id.value]; }

  const FusedOps& fusion() const { return fusion_; }
  // By instruction, whether it is computed where it is used.
  const std::vector<bool>& fused() const { return fusion_.fused; }
  // Whether it never has the memory of an operand.
  bool WritesBeside(InstrId id) const { return fusion_.called[id.value]; }
  // Whether a collective is started before other steps that run beside it.
  bool IsStarted(InstrId id) const { return started_[id.value]; }
  bool HasOwnMemory(InstrId id) const { return !IsView(m_, id) && !fused()[id.value]; }

  // All leaves of the module, numbered.
  int NumberOf(ValueLeaf leaf) const { return first_[leaf.value.value] + leaf.leaf; }
  int num_leaves() const { return static_cast<int>(uses_.size()); }

  // The place of the last use; behind all of them for what the computation returns.
  int LastUse(ValueLeaf leaf) const { return uses_[NumberOf(leaf)].last; }
  // The same without the uses of loops that begin with it.
  int LastUseBesideLoops(ValueLeaf leaf) const { return uses_[NumberOf(leaf)].last_beside_loops; }
  // The place of the last op that has the instruction, or a loop that begins with it, as operand.
  int LastReader(InstrId id) const { return last_reader_[id.value]; }

 private:
  struct Uses {
    int last = 0, last_beside_loops = 0;
  };
  void FindOrder(CompId c, const MemoryRules& rules);
  void FindUses(CompId c);
  void UseOperands(InstrId id, int place);
  void Use(ValueLeaf leaf, int last, int last_beside_loops);

  const Module& m_;
  const FusedOps fusion_;
  std::vector<std::vector<InstrId>> order_;  // by computation; empty: that of the module
  // By instruction; the last is the place of the last op that computes it on the way, though it has
  // memory, too.
  std::vector<int> place_, first_, last_reader_, last_recomputed_;
  std::vector<bool> started_;  // by instruction
  std::vector<Uses> uses_;     // by leaf
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_LEAF_LIFETIMES_H_
