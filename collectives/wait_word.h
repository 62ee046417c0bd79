// SPDX-License-Identifier: Apache-2.0
// A 32-bit word that threads wait on until it changes or a deadline passes. A waiter first yields
// the core a few times, since devices often meet within microseconds, then sleeps, so that
// hundreds of devices can share two cores.
#ifndef SHARDCALL_COLLECTIVES_WAIT_WORD_H_
#define SHARDCALL_COLLECTIVES_WAIT_WORD_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "absl/time/time.h"

namespace shardcall {
inline namespace internal {

// A time of the monotonic clock; kNever waits forever.
using MonotonicTime = std::chrono::steady_clock::time_point;
inline constexpr MonotonicTime kNever = MonotonicTime::max();

// Now plus the duration; kNever if that is infinite or out of range.
MonotonicTime DeadlineAfter(absl::Duration duration);

class WaitWord {
 public:
  explicit WaitWord(uint32_t value) : word_(value) {}

  uint32_t Load() const { return word_.load(std::memory_order_acquire); }
  // Changes the word without waking any waiter.
  void Store(uint32_t value) { word_.store(value, std::memory_order_release); }
  void StoreAndWakeAll(uint32_t value);

  // Returns the word once it is not `old`, or `old` if the deadline has passed. Polls up to
  // `yields` times before it sleeps.
  uint32_t AwaitChange(uint32_t old, MonotonicTime deadline, int yields = 0) const;

 private:
  std::atomic<uint32_t> word_;
  mutable std::atomic<uint32_t> sleepers_{0};
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_WAIT_WORD_H_
