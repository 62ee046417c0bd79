// SPDX-License-Identifier: Apache-2.0
// Fusion: steps that compute element by element over the same number of elements
// become one step (fused_step.h), with the reductions of what they make.
// Broadcasts, iotas and reshapes that such steps
// read are read through instead of being made. What every value is stays the
// same to the bit; only what is held in memory changes.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSE_H_
#define SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSE_H_

#include <vector>

#include "shardcall/partitioner/runtime/fuse/fused_step.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {

// Rewrites the steps of a computation. To be called before last uses are found.
void FuseSteps(ProgramComputation* comp);

// What a slot stands for in the eyes of a fused step.
struct ValueView {
  int32_t slot = -1;
  bool whole = true;  // element i is the slot's element i
  FusedView view;     // else
};

// What is known of the steps before any is fused.
class StepSurvey {
 public:
  explicit StepSurvey(ProgramComputation* comp);

  int producer(int32_t slot) const { return producer_[slot]; }  // -1: parameter or constant
  bool IsElementwise(int step) const { return elementwise_[step]; }
  // A reduction that may end a fused step of its operand's size.
  bool IsReduction(int step) const { return reduction_[step]; }
  int64_t elements(int step) const { return elements_[step]; }
  // Sees through reshapes, broadcasts and iotas. `elements`: of the reader.
  ValueView Resolve(int32_t slot) const;
  // Only made for what reads it: dropped if nothing does.
  bool IsFree(int step) const { return free_[step]; }
  // Its order relative to others of its kind must stay.
  bool IsOrdered(int step) const { return ordered_[step]; }

 private:
  const ProgramComputation& comp_;
  std::vector<int> producer_;
  std::vector<bool> elementwise_, reduction_, free_, ordered_;
  std::vector<int64_t> elements_;
  std::vector<int32_t> iota_slot_;  // by step: constant slot of its line, or -1
};

// By step: the number of its group, or -1. Contracting each group to a point
// leaves the dependencies without cycles.
std::vector<int> GroupSteps(const ProgramComputation& comp, const StepSurvey& survey);

// The fused step of these steps; `needed`: by slot, whether anything else reads it.
Step MakeFusedStep(ProgramComputation* comp, const StepSurvey& survey,
                   const std::vector<int>& members, const std::vector<bool>& needed);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_FUSE_FUSE_H_
