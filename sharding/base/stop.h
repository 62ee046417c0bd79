// SPDX-License-Identifier: Apache-2.0
// Ends calls of this library before they are done: when somebody asks for it, or at a time.
//
//   StopSource source;                                  // a signal handler may ask it to stop
//   StopScope scope({.source = &source, .limit = absl::Minutes(5)});
//   auto program = Partition(std::move(module), options);   // E346 soon after a request
#ifndef SHARDCALL_SHARDING_BASE_STOP_H_
#define SHARDCALL_SHARDING_BASE_STOP_H_

#include <algorithm>
#include <atomic>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// A request to stop. Any thread may make it at any time, and so may a signal handler.
class StopSource {
 public:
  void Request() { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const { return requested_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
};

struct StopOptions {
  const StopSource* source = nullptr;  // not owned; null: none
  // From the scope's beginning.
  absl::Duration limit = absl::InfiniteDuration();
  // Whether to stop. Called at most every 20 ms, on the thread of the scope. Empty: none.
  std::function<bool()> poll = {};
};

// While it lives, calls of this library on its thread, and what they run on other threads, end with
// E346 soon after a stop is asked for (kCancelled), or after `limit` (kDeadlineExceeded). An array
// operation that is under way, or a handler, does not delay this: its thread is abandoned, with
// everything that it uses, and ends when it can. A call that was stopped has no other effect than
// the error; over MPI and NCCL it ends the job. Scopes nest: an outer one holds within an inner
// one, too. A scope must end on the thread where it began.
class StopScope {
 public:
  explicit StopScope(StopOptions options);
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
  ~StopScope();

  // Of this thread; null: nothing stops its calls.
  static StopScope* Innermost();
  // OK, or E346, from then on.
  absl::Status Check();

 private:
  absl::Status Find();

  const StopOptions options_;
  const absl::Duration end_;  // by the clock of steady_time.h
  StopScope* const outer_;
  absl::Status stopped_;
  absl::Duration polled_;
};

}  // namespace shardcall

namespace shardcall {
inline namespace internal {

inline constexpr absl::Duration kStopPollEvery = absl::Milliseconds(20);

// OK, or E346 if this thread's call is to stop: for each step of a loop that may take long. Costs a
// test where no scope is open, else a look at the clock.
inline absl::Status CheckStop() {
  StopScope* const scope = StopScope::Innermost();
  return scope == nullptr ? absl::OkStatus() : scope->Check();
}

// How long a thread that would wait for `longest` may, before it must call CheckStop.
inline absl::Duration UntilCheckStop(absl::Duration longest) {
  return StopScope::Innermost() == nullptr ? longest : std::min(longest, kStopPollEvery);
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_STOP_H_
