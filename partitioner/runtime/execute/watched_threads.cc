// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/execute/watched_threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/guard/running_call.h"
#include "shardcall/kernels/ffi/timed_call.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/steady_time.h"

namespace shardcall::inline internal {
namespace {

std::atomic<int> left_behind{0};

// State that the threads share; the last one releases it.
struct Shared {
  Shared(int n, std::function<void(int)> body_of) : body(std::move(body_of)), devices(n) {}
  struct Device {
    CallWatch watch;
    bool returned = false, left = false;  // under `mutex`
  };
  const std::function<void(int)> body;
  std::vector<Device> devices;
  std::mutex mutex;
  std::condition_variable changed;
  int returned = 0;
};

void RunDevice(const std::shared_ptr<Shared>& shared, int d) {
  Shared::Device& device = shared->devices[d];
  {
    const CallWatch::Scope scope(&device.watch);
    shared->body(d);
  }
  const std::lock_guard<std::mutex> lock(shared->mutex);
  device.returned = true;
  ++shared->returned;
  if (device.left) --left_behind;
  shared->changed.notify_all();
}

absl::Status LateStatus(const CallWatch& watch, int device, absl::Duration deadline) {
  return ToStatus(
      {.code = "E319",
       .message = absl::StrCat("the handler of \"", watch.target(), "\" has not returned within ",
                               absl::FormatDuration(deadline), " on device ", device),
       .where = absl::StrCat("%", watch.instruction()),
       .fix = "Correct the handler, or give a longer --deadline"},
      absl::StatusCode::kDeadlineExceeded);
}

absl::Status NoThreads(const std::system_error& error) {
  return ToStatus(
      {.code = "E315",
       .message = absl::StrCat("cannot start a thread for every device: ", error.what()),
       .fix = "Raise ulimit -u, or run fewer devices in one process"},
      absl::StatusCode::kUnavailable);
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

}  // namespace

absl::Status RunWatched(int num_devices, absl::Duration deadline, std::function<void(int)> body,
                        absl::FunctionRef<void(const absl::Status&)> stop) {
  const auto shared = std::make_shared<Shared>(num_devices, std::move(body));
  std::vector<std::thread> threads;
  absl::Status failure;
  try {
    for (int d = 0; d < num_devices; ++d) threads.emplace_back(RunDevice, shared, d);
  } catch (const std::system_error& e) {
    failure = NoThreads(e);
    stop(failure);
  }
  const int started = static_cast<int>(threads.size());
  const auto look_every = std::chrono::microseconds(absl::ToInt64Microseconds(
      std::clamp(deadline / 8, absl::Milliseconds(5), absl::Milliseconds(250))));
  Observer observer(*shared, deadline);
  absl::Duration leave_at = absl::InfiniteDuration();
  std::unique_lock<std::mutex> lock(shared->mutex);
  const auto all_returned = [&] { return shared->returned == started; };
  while (!shared->changed.wait_for(lock, look_every, all_returned)) {
    const absl::Duration now = SteadyNow();
    bool all_late = true;
    for (int d = 0; d < started; ++d) {
      if (shared->devices[d].returned) continue;
      const bool late = observer.IsLate(d, now);
      all_late = all_late && late;
      if (!late || leave_at != absl::InfiniteDuration()) continue;
      failure = LateStatus(shared->devices[d].watch, d, deadline);
      leave_at = now + deadline + absl::Seconds(1);
      lock.unlock();
      stop(failure);
      lock.lock();
    }
    if (leave_at == absl::InfiniteDuration() || (!all_late && now < leave_at)) continue;
    for (Shared::Device& device : shared->devices) {
      if (device.returned) continue;
      device.left = true;
      ++left_behind;
    }
    break;
  }
  std::vector<bool> left;
  for (int d = 0; d < started; ++d) left.push_back(shared->devices[d].left);
  lock.unlock();
  for (int d = 0; d < started; ++d) {
    if (left[d]) {
      threads[d].detach();
    } else {
      threads[d].join();
    }
  }
  return failure;
}

int ThreadsLeftBehind() { return left_behind + CallsLeftBehind(); }

}  // namespace shardcall::inline internal
