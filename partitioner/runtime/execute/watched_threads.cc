// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/execute/watched_threads.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/guard/running_call.h"
#include "shardcall/kernels/ffi/timed_call.h"
#include "shardcall/partitioner/ir/opcode.h"
#include "shardcall/partitioner/runtime/execute/active_runs.h"
#include "shardcall/partitioner/runtime/execute/device_threads.h"
#include "shardcall/partitioner/runtime/out_of_memory.h"
#include "shardcall/sharding/base/of_this_process.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/steady_time.h"
#include "shardcall/sharding/base/stop.h"

namespace shardcall {
inline namespace internal {
namespace {

// A child of fork() has none of them.
struct LeftBehind {
  std::atomic<int> threads{0};
};
std::atomic<int>& LeftBehindHere() { return OfThisProcess<LeftBehind>()->threads; }

// State that the threads share; the last one releases it.
struct Shared {
  Shared(int n, DeviceBody body_of) : body(std::move(body_of)), devices(n) {}
  struct Device {
    CallWatch watch;
    RunningSteps running;
    bool returned = false, left = false;  // under `mutex`
  };
  const DeviceBody body;
  std::vector<Device> devices;
  std::mutex mutex;
  std::condition_variable changed;
  int returned = 0;
  int started = -1;  // -1: not all yet
};

void RunDevice(Shared& shared, int d) {
  Shared::Device& device = shared.devices[d];
  {
    const CallWatch::Scope scope(&device.watch);
    shared.body(d, &device.running);
  }
  const std::lock_guard<std::mutex> lock(shared.mutex);
  device.returned = true;
  ++shared.returned;
  if (device.left) --LeftBehindHere();
  if (shared.returned == shared.started) shared.changed.notify_all();
}

absl::Status LateStatus(const CallWatch& watch, int device, absl::Duration deadline) {
  return ToStatus(
      {.code = "E319",
       .message = absl::StrCat("the handler of \"", watch.target(), "\" has not returned within ",
                               absl::FormatDuration(deadline), " on device ", device),
       .where = absl::StrCat("%", watch.instruction()),
       .fix = "Correct the handler, or give a longer deadline (--wait)"},
      absl::StatusCode::kDeadlineExceeded);
}

// Tracks since when each device's current call has been running, as seen by periodic checks.
class Observer {
 public:
  Observer(const Shared& shared, absl::Duration deadline)
      : shared_(shared), deadline_(deadline), seen_(shared.devices.size()) {}

  // Must be called under the mutex. Whether the device has been in a handler for too long.
  bool IsLate(int d, absl::Duration now) {
    const uint64_t calls = shared_.devices[d].watch.calls();
    if (calls != seen_[d].calls) seen_[d] = {calls, now};
    // Waits inside a handler have the same deadline; the grace lets their own error be reported
    // first.
    const absl::Duration grace = std::min(deadline_ / 4, absl::Seconds(1));
    return calls % 2 != 0 && now - seen_[d].since > deadline_ + grace;
  }

 private:
  struct Seen {
    uint64_t calls = 0;
    absl::Duration since;
  };
  const Shared& shared_;
  const absl::Duration deadline_;
  std::vector<Seen> seen_;
};

// Whether the device only waits: for other devices, or for a handler. Both have deadlines of their
// own.
bool Waits(const RunningSteps& running) {
  const Step* const step = running.innermost.load(std::memory_order_relaxed);
  return step != nullptr &&
         (HasTrait(step->opcode, kCollectiveOp) || step->opcode == Opcode::kCustomCall);
}

// Whether the process could have that much more memory now.
bool MemoryIsThere(size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at != MAP_FAILED) munmap(at, bytes);
  return at != MAP_FAILED;
}
// For devices that compute when the run fails, so that few are abandoned.
constexpr absl::Duration kPatience = absl::Seconds(5);
constexpr size_t kStackOfThread = size_t{16} << 20;
constexpr size_t kBufferOfBlas = size_t{256} << 20;  // for each thread that multiplies at once

// Starts the thread of one device. Again if none could be started though there is memory for its
// stack: another thread may just have given it back.
void StartDevice(const std::shared_ptr<Shared>& shared, int device) {
  constexpr int kMostTries = 3;
  for (int tries = 1;; ++tries) {
    try {
      return RunOnDeviceThread([shared, device] { RunDevice(*shared, device); });
    } catch (const std::system_error&) {
      if (tries == kMostTries || !MemoryIsThere(kStackOfThread)) throw;
    }
  }
}

// The error for a thread that cannot be started: E315, or E314 if its stack finds no memory.
absl::Status NoThreadStatus(const std::system_error& error, const std::string& where) {
  if (!MemoryIsThere(kStackOfThread)) {
    return ToStatus({.code = "E314",
                     .message = "out of memory: a device's thread finds none for its stack",
                     .where = where,
                     .fix = "Raise ulimit -v, or run fewer devices in one process"},
                    absl::StatusCode::kResourceExhausted);
  }
  return ToStatus(
      {.code = "E315",
       .message = absl::StrCat("cannot start a thread for every device: ", error.what()),
       .where = where,
       .fix = "Raise ulimit -u, or ulimit -v if it limits memory, or run fewer devices in one "
              "process"},
      absl::StatusCode::kUnavailable);
}

// Waits for the threads of one run, and stops them.
class Watch {
 public:
  Watch(const std::shared_ptr<Shared>& shared, absl::Duration deadline,
        absl::FunctionRef<void(const absl::Status&)> stop)
      : shared_(*shared),
        deadline_(deadline),
        stop_(stop),
        observer_(*shared, deadline),
        began_(SteadyNow()) {}

  // Stops the run. Threads that have not returned after `patience` are left.
  void Fail(const absl::Status& status, absl::Duration patience) {
    failure_ = status;
    leave_at_ = SteadyNow() + patience;
    stop_(status);
  }

  // Returns when each of the first `started` devices has returned, or is to be left.
  void Wait(int started) {
    std::unique_lock<std::mutex> lock(shared_.mutex);
    shared_.started = started;
    const auto all_returned = [&] { return shared_.returned == started; };
    while (!shared_.changed.wait_for(lock, LookEvery(), all_returned)) {
      lock.unlock();
      const absl::Status status = CheckStop();  // may call Python
      lock.lock();
      if (!status.ok() && failure_.ok()) CheckLimit(status, lock);
      if (Leaves(lock)) return LeaveAll();
    }
  }

  const absl::Status& failure() const { return failure_; }

 private:
  // For what needs no more than to see that it is to stop.
  static constexpr absl::Duration kTimeToEnd = absl::Milliseconds(500);
  // Beyond a limit, for a device that may say what it waits for.
  static constexpr absl::Duration kTimeToSay = absl::Seconds(2);

  std::chrono::microseconds LookEvery() const {
    return std::chrono::microseconds(absl::ToInt64Microseconds(
        std::clamp(deadline_ / 8, absl::Milliseconds(5), UntilCheckStop(absl::Milliseconds(250)))));
  }

  // `status`: why the call is to stop. Requests take effect at once. At a limit of time, a device
  // that waits may be about to say for whom, which helps more: if the deadline of a wait can have
  // come by then.
  void CheckLimit(const absl::Status& status, std::unique_lock<std::mutex>& lock) {
    int named = -1;
    for (int d = 0; d < shared_.started && named < 0; ++d) {
      const Shared::Device& device = shared_.devices[d];
      if (!device.returned && !Waits(device.running)) named = d;
    }
    const absl::Duration now = SteadyNow();
    const bool may_say = deadline_ <= now - began_ + kTimeToSay;
    if (absl::IsDeadlineExceeded(status) && named < 0 && may_say) {
      limit_seen_ = std::min(limit_seen_, now);
      if (now - limit_seen_ < kTimeToSay) return;
    }
    std::string place;
    for (int d = std::max(named, 0); d < shared_.started && place.empty(); ++d) {
      if (!shared_.devices[d].returned) place = PlaceOf(shared_.devices[d].running, d);
    }
    if (!place.empty() && !MemoryIsThere(kBufferOfBlas)) {
      absl::StrAppend(&place, "; memory is short, and BLAS waits for it without an end");
    }
    lock.unlock();
    Fail(place.empty() ? status : In(status, place), kTimeToEnd);
    lock.lock();
  }

  // Whether to leave all that have not returned.
  bool Leaves(std::unique_lock<std::mutex>& lock) {
    const absl::Duration now = SteadyNow();
    bool all_late = true;
    for (int d = 0; d < shared_.started; ++d) {
      if (shared_.devices[d].returned) continue;
      const bool late = observer_.IsLate(d, now);
      all_late = all_late && late;
      if (!late || !failure_.ok()) continue;
      const absl::Status status = LateStatus(shared_.devices[d].watch, d, deadline_);
      lock.unlock();
      Fail(status, deadline_ + absl::Seconds(1));
      lock.lock();
    }
    return leave_at_ != absl::InfiniteDuration() && (all_late || now >= leave_at_);
  }

  void LeaveAll() {
    for (int d = 0; d < shared_.started; ++d) {
      Shared::Device& device = shared_.devices[d];
      if (device.returned) continue;
      device.left = true;
      ++LeftBehindHere();
    }
  }

  Shared& shared_;
  const absl::Duration deadline_;
  const absl::FunctionRef<void(const absl::Status&)> stop_;
  Observer observer_;
  const absl::Duration began_;
  absl::Status failure_;
  absl::Duration leave_at_ = absl::InfiniteDuration(), limit_seen_ = absl::InfiniteDuration();
};

}  // namespace

bool NeedsWatch(const DeviceProgram& program) {
  return !program.targets.empty() || StopScope::Innermost() != nullptr;
}

absl::Status RunWatched(const std::string& name, int num_devices, absl::Duration deadline,
                        DeviceBody body, absl::FunctionRef<void(const absl::Status&)> stop) {
  const auto shared = std::make_shared<Shared>(num_devices, std::move(body));
  const ActiveRun active(stop);
  if (!active.status().ok()) {
    stop(active.status());
    return active.status();
  }
  Watch watch(shared, deadline, stop);
  int started = 0;
  try {
    for (; started < num_devices; ++started) {
      StartDevice(shared, started);
    }
  } catch (const std::system_error& e) {
    watch.Fail(NoThreadStatus(e, name), kPatience);
  } catch (const std::bad_alloc& e) {
    watch.Fail(OutOfMemoryStatus(e, name), kPatience);
  }
  watch.Wait(started);
  return watch.failure().ok() ? active.status() : watch.failure();
}

int ThreadsLeftBehind() { return LeftBehindHere() + CallsLeftBehind(); }

}  // namespace internal
}  // namespace shardcall
