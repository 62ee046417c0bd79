// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/execute/active_runs.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "shardcall/kernels/ffi/guard/running_call.h"
#include "shardcall/partitioner/runtime/execute/watched_threads.h"
#include "shardcall/sharding/base/of_this_process.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal {
namespace {

constexpr auto kLongestWait = std::chrono::seconds(5);

// Runs that this thread waits for, or is a device of.
thread_local int depth = 0;

absl::Status EndsStatus() {
  return ToStatus({.code = "E346",
                   .message = "stopped, because the process exits",
                   .fix = "Let threads end their runs before the process exits"},
                  absl::StatusCode::kCancelled);
}

// How many libraries this process has loaded so far.
unsigned long long LibrariesLoaded() {
  unsigned long long loaded = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;
      },
      &loaded);
  return loaded;
}

// Keeps this library loaded, since exit() is going to call it.
void StayLoaded() {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&StayLoaded), &self) != 0) {
    dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

}  // namespace

class ActiveRuns {
 public:
  absl::Status StatusOfThisThread() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return MayBegin() ? absl::OkStatus() : EndsStatus();
  }

  void Begin(ActiveRun* run) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!MayBegin()) {
      run->status_ = EndsStatus();
      return;
    }
    // Handlers of exit() run last in, first out. This one must come before those of every library
    // that a run may use.
    const unsigned long long libraries = LibrariesLoaded();
    if (libraries != libraries_) {
      StayLoaded();
      libraries_ = libraries;
      on_exit([](int status, void*) { OfThisProcess<ActiveRuns>()->Exit(status); }, nullptr);
    }
    run->place_ = runs_.insert(runs_.end(), run);
    run->list_ = this;
    ++depth;
  }

  absl::Status StatusOf(const ActiveRun& run) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return run.status_;
  }

  void End(ActiveRun* run) {
    if (run->list_ == nullptr) return;
    --depth;
    if (run->list_ != this) return;  // of the parent process
    const std::lock_guard<std::mutex> lock(mutex_);
    runs_.erase(run->place_);
    if (runs_.empty()) changed_.notify_all();
  }

  // Whether all runs have ended.
  bool StopAll() {
    std::unique_lock<std::mutex> lock(mutex_);
    exiting_ = std::this_thread::get_id();
    for (ActiveRun* run : runs_) {
      run->status_ = EndsStatus();
      run->stop_(run->status_);
    }
    // A run that this thread works for cannot end, since exit() does not return.
    const bool inside = depth > 0 || CallWatch::OfThisThread() != nullptr;
    return !inside && changed_.wait_for(lock, kLongestWait, [this] { return runs_.empty(); });
  }

 private:
  bool MayBegin() const { return !exiting_.has_value() || *exiting_ == std::this_thread::get_id(); }

  void Exit(int status) {
    if (StopAll() && ThreadsLeftBehind() == 0) return;
    std::fflush(nullptr);
    _exit(status);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<ActiveRun*> runs_;
  std::optional<std::thread::id> exiting_;  // the thread that called exit()
  unsigned long long libraries_ = 0;        // loaded when a run last began
};

absl::Status CheckProcessGoesOn() { return OfThisProcess<ActiveRuns>()->StatusOfThisThread(); }
void StopRunsOfOtherThreads() { OfThisProcess<ActiveRuns>()->StopAll(); }

ActiveRun::ActiveRun(std::function<void(const absl::Status&)> stop) : stop_(std::move(stop)) {
  OfThisProcess<ActiveRuns>()->Begin(this);
}
absl::Status ActiveRun::status() const { return OfThisProcess<ActiveRuns>()->StatusOf(*this); }
ActiveRun::~ActiveRun() { OfThisProcess<ActiveRuns>()->End(this); }

}  // namespace shardcall::inline internal
