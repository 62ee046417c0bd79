// SPDX-License-Identifier: Apache-2.0
// Fusion: elementwise steps over the same number of elements become one step (fused_step.h),
// together with reductions of their results. Broadcasts, iotas and reshapes that are read by such
// steps are computed on the fly. Every value keeps its bits; only the use of memory changes.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSE_H_
#define SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSE_H_

#include <vector>

#include "shardcall/partitioner/runtime/fuse/fused_step.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {
inline namespace internal {

// Rewrites the steps of a computation. Call this before last uses are determined.
void FuseSteps(ProgramComputation* comp);

// How a fused step reads a slot.
struct ValueView {
  int32_t slot = -1;
  bool whole = true;  // element i is the slot's element i
  FusedView view;     // if not `whole`
};

// Properties of the steps before fusion.
class StepSurvey {
 public:
  explicit StepSurvey(ProgramComputation* comp);

  int producer(int32_t slot) const { return producer_[slot]; }  // -1: parameter or constant
  bool IsElementwise(int step) const { return elementwise_[step]; }
  // Whether it is a reduction that can end a fused step of its operand's size.
  bool IsReduction(int step) const { return reduction_[step]; }
  int64_t elements(int step) const { return elements_[step]; }
  // Looks through reshapes, broadcasts and iotas. `elements`: of the reader.
  ValueView Resolve(int32_t slot) const;
  // Whether it is computed only for its readers, and is dropped if none is left.
  bool IsFree(int step) const { return free_[step]; }
  // Whether its order relative to other ordered steps must stay.
  bool IsOrdered(int step) const { return ordered_[step]; }

 private:
  const ProgramComputation& comp_;
  std::vector<int> producer_;
  std::vector<bool> elementwise_, reduction_, free_, ordered_;
  std::vector<int64_t> elements_;
  std::vector<int32_t> iota_slot_;  // by step: constant slot of its line, or -1
};

// The number of each step's group, or -1. Contracting each group to one node keeps the dependency
// graph acyclic.
std::vector<int> GroupSteps(const ProgramComputation& comp, const StepSurvey& survey);

// The fused step of `members`; `needed` tells by slot whether another step reads it.
Step MakeFusedStep(ProgramComputation* comp, const StepSurvey& survey,
                   const std::vector<int>& members, const std::vector<bool>& needed);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSE_H_
