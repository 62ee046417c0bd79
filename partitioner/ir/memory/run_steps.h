// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDCALL_PARTITIONER_IR_MEMORY_RUN_STEPS_H_
#define SHARDCALL_PARTITIONER_IR_MEMORY_RUN_STEPS_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/memory/fused_ops.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall {
inline namespace internal {

// The instructions of a computation that a backend runs, each with what is fused into it: those
// with memory of their own, and parameters. What is fused, or names memory, and stands for more
// than kMostReads of them is a step, too, which takes no time. By place in the computation.
class RunSteps {
 public:
  static constexpr size_t kMostReads = 64;

  // All must outlive it.
  RunSteps(const Module& m, CompId c, const FusedOps& fusion);

  int size() const { return static_cast<int>(instructions_.size()); }
  InstrId At(int place) const { return instructions_[place]; }
  bool Runs(int place) const { return steps_[place].runs; }
  bool HasMemory(int place) const { return steps_[place].has_memory; }
  // The steps whose memory one reads, in the order of the computation, without repetition.
  absl::Span<const int> Reads(int place) const { return steps_[place].reads; }
  // The steps that read it; none of what does not run.
  absl::Span<const int> Users(int place) const { return steps_[place].users; }

  // All instructions, with the steps in this order, which follows their reads: what is fused, and
  // what only names memory, stands before its first user.
  std::vector<InstrId> InOrder(absl::Span<const int> steps) const;

 private:
  struct Step {
    bool runs = false, has_memory = false;
    std::vector<int> reads, users;
  };
  void FindReads(int place, const FusedOps& fusion);

  const Module& m_;
  const absl::Span<const InstrId> instructions_;
  absl::flat_hash_map<InstrId, int> place_;
  std::vector<Step> steps_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_MEMORY_RUN_STEPS_H_
