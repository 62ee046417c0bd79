// SPDX-License-Identifier: Apache-2.0
// The runs of this process, so that it can end while they are under way. exit() destroys what they
// use: objects of libraries, and the memory of BLAS. So it first stops all runs and waits for them.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_ACTIVE_RUNS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_ACTIVE_RUNS_H_

#include <functional>
#include <list>

#include "absl/status/status.h"

namespace shardcall {
inline namespace internal {

// One run, for as long as any thread works for it. When the process exits, `stop` is called with
// E346, on the thread that called exit(). If the run has not ended 5 s later, or if a thread was
// abandoned before, the process ends at once, with the status that exit() was given: output of
// stdio is written, but the remaining exit handlers do not run.
class ActiveRun {
 public:
  explicit ActiveRun(std::function<void(const absl::Status&)> stop);
  ActiveRun(const ActiveRun&) = delete;
  ActiveRun& operator=(const ActiveRun&) = delete;
  ~ActiveRun();

  // OK, or E346 if the process exits: then the run must not begin, or has been stopped.
  absl::Status status() const;

 private:
  friend class ActiveRuns;

  const std::function<void(const absl::Status&)> stop_;
  // Of ActiveRuns:
  absl::Status status_;
  const void* list_ = nullptr;  // where it is listed; null: nowhere
  std::list<ActiveRun*>::iterator place_;
};

// OK, or E346 if this thread can begin no run, because the process exits: for what takes the
// failure of a run for a finding.
absl::Status CheckProcessGoesOn();

// As exit() does: stops all runs, waits for them at most 5 s, and lets only this thread begin more.
// For runtimes that end before the process does.
void StopRunsOfOtherThreads();

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_ACTIVE_RUNS_H_
