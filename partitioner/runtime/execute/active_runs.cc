// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/execute/active_runs.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
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
  static ActiveRuns& OfProcess() {
    static ActiveRuns* const runs = [] {
      StayLoaded();
      // The threads of the parent's runs are not in a child of fork().
      pthread_atfork(nullptr, nullptr, [] { OfProcess().Forget(); });
      return new ActiveRuns;
    }();
    return *runs;
  }

  void Begin(ActiveRun* run) {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->exiting.has_value() && *state_->exiting != std::this_thread::get_id()) {
      run->status_ = EndsStatus();
      return;
    }
    // Handlers of exit() run last in, first out. This one must come before those of every library
    // that a run may use.
    const unsigned long long libraries = LibrariesLoaded();
    if (libraries != state_->libraries) {
      state_->libraries = libraries;
      on_exit([](int status, void*) { OfProcess().Exit(status); }, nullptr);
    }
    run->place_ = state_->runs.insert(state_->runs.end(), run);
    run->list_ = state_;
    ++depth;
  }

  absl::Status StatusOf(const ActiveRun& run) {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    return run.status_;
  }

  void End(ActiveRun* run) {
    if (run->list_ == nullptr) return;
    --depth;
    if (run->list_ != state_) return;  // of the parent process
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->runs.erase(run->place_);
    if (state_->runs.empty()) state_->changed.notify_all();
  }

  // Whether all runs have ended.
  bool StopAll() {
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->exiting = std::this_thread::get_id();
    for (ActiveRun* run : state_->runs) {
      run->status_ = EndsStatus();
      run->stop_(run->status_);
    }
    // A run that this thread works for cannot end, since exit() does not return.
    const bool inside = depth > 0 || CallWatch::OfThisThread() != nullptr;
    return !inside &&
           state_->changed.wait_for(lock, kLongestWait, [this] { return state_->runs.empty(); });
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::list<ActiveRun*> runs;
    std::optional<std::thread::id> exiting;  // the thread that called exit()
    unsigned long long libraries = 0;        // loaded when a run last began
  };

  void Exit(int status) {
    if (StopAll() && ThreadsLeftBehind() == 0) return;
    std::fflush(nullptr);
    _exit(status);
  }

  // Another state, since a thread that is gone may have held the mutex of this one.
  void Forget() { state_ = new State; }

  State* state_ = new State;
};

void StopRunsOfOtherThreads() { ActiveRuns::OfProcess().StopAll(); }

ActiveRun::ActiveRun(std::function<void(const absl::Status&)> stop) : stop_(std::move(stop)) {
  ActiveRuns::OfProcess().Begin(this);
}
absl::Status ActiveRun::status() const { return ActiveRuns::OfProcess().StatusOf(*this); }
ActiveRun::~ActiveRun() { ActiveRuns::OfProcess().End(this); }

}  // namespace shardcall::inline internal
