// SPDX-License-Identifier: Apache-2.0
// Observes every step of a run: its operands before it, its results after it.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_STEP_OBSERVER_H_
#define SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_STEP_OBSERVER_H_

#include <vector>

#include "absl/status/status.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/program.h"
#include "shardcall/partitioner/runtime/tensor.h"

namespace shardcall {
inline namespace internal {

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // `slots` hold the operands, and must still hold them afterwards. An error ends the run.
  virtual absl::Status Before(StepRun& run, std::vector<Tensor>& slots) = 0;
  // `slots` hold the results, and those operands that are read again.
  virtual void After(const Step& step, std::vector<Tensor>& slots) = 0;
  // Whether the steps of the computations that it calls are observed.
  virtual bool Enters(const Step& step) const = 0;

  // The observer of this thread's runs; null: none. Without one the cost is a test per step.
  static StepObserver* OfThisThread();
  class Scope {
   public:
    explicit Scope(StepObserver* observer);  // null: suspends observation
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    StepObserver* const before_;
  };
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_STEP_OBSERVER_H_
