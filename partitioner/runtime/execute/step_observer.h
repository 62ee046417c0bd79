// SPDX-License-Identifier: Apache-2.0
// Who looks at every step of a run: its operands before, its results after.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_STEP_OBSERVER_H_
#define SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_STEP_OBSERVER_H_

#include <vector>

#include "absl/status/status.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/program.h"
#include "shardcall/partitioner/runtime/tensor.h"

namespace shardcall {

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // The operands stand in `slots`, and must stand there afterwards. An error ends the run.
  virtual absl::Status Before(StepRun& run, std::vector<Tensor>& slots) = 0;
  // The results stand in `slots`; of the operands those that are read again.
  virtual void After(const Step& step, std::vector<Tensor>& slots) = 0;
  // Whether the steps of what it calls are looked at.
  virtual bool Enters(const Step& step) const = 0;

  // Of what this thread runs; null: none. With none, a run costs a test per step.
  static StepObserver* OfThisThread();
  class Scope {
   public:
    explicit Scope(StepObserver* observer);  // null: nobody looks for a while
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    StepObserver* const before_;
  };
};

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_STEP_OBSERVER_H_
