// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/execute/active_runs.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
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
#include "shardcall/sharding/base/process_lock.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
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
  static constinit std::atomic<bool> stays{false};
  if (stays.load(std::memory_order_relaxed)) return;
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&StayLoaded), &self) != 0) {
    dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
  stays.store(true, std::memory_order_relaxed);
}

}  // namespace

class ActiveRuns {
 public:
  absl::Status StatusOfThisThread() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return MayBegin() ? absl::OkStatus() : EndsStatus();
  }

  void Begin(ActiveRun* run) {
    ComeFirstAtExit();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!MayBegin()) {
      run->status_ = EndsStatus();
      return;
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
  // Handlers of exit() run last in, first out. Ours must come before those of every library that a
  // run may use. A child of fork() has the parent's, and may not ask for its own: the parent's
  // exit() may have held the lock of the list. So this is under the lock that a fork waits for.
  static void ComeFirstAtExit() {
    static unsigned long long before = 0;  // libraries that were loaded then
    // Not under that lock: it waits for libraries that are being loaded, which may wait for it.
    StayLoaded();
    const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
    const unsigned long long libraries = LibrariesLoaded();
    if (libraries == before) return;
    before = libraries;
    on_exit([](int status, void*) { OfThisProcess<ActiveRuns>()->Exit(status); }, nullptr);
  }

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
};

absl::Status CheckProcessGoesOn() { return OfThisProcess<ActiveRuns>()->StatusOfThisThread(); }
void StopRunsOfOtherThreads() { OfThisProcess<ActiveRuns>()->StopAll(); }

ActiveRun::ActiveRun(std::function<void(const absl::Status&)> stop) : stop_(std::move(stop)) {
  OfThisProcess<ActiveRuns>()->Begin(this);
}
absl::Status ActiveRun::status() const { return OfThisProcess<ActiveRuns>()->StatusOf(*this); }
ActiveRun::~ActiveRun() { OfThisProcess<ActiveRuns>()->End(this); }

}  // namespace internal
}  // namespace shardcall
