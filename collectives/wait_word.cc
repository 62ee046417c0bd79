// SPDX-License-Identifier: Apache-2.0
#include "shardcall/collectives/wait_word.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace shardcall {
inline namespace internal {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

MonotonicTime DeadlineAfter(absl::Duration duration) {
  if (duration > absl::Hours(24 * 365)) return kNever;
  return std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(duration);
}

void WaitWord::StoreAndWakeAll(uint32_t value) {
  // Sequentially consistent, like the waiter's count: either the waiter sees the new value before
  // it sleeps, or the waiter is counted here.
  word_.store(value, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

uint32_t WaitWord::AwaitChange(uint32_t old, MonotonicTime deadline, int yields) const {
  for (int look = 0; look < yields; ++look) {
    const uint32_t value = Load();
    if (value != old) return value;
    sched_yield();
  }
  timespec until{};
  if (deadline != kNever) {
    const auto nanos =
        std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch()).count();
    until.tv_sec = nanos / 1000000000;
    until.tv_nsec = nanos % 1000000000;
  }
  while (true) {
    const uint32_t value = Load();
    if (value != old) return value;
    if (deadline != kNever && std::chrono::steady_clock::now() >= deadline) return old;
    // The bitset form takes an absolute time of the monotonic clock, which steady_clock uses.
    // After any return, early or not, the word is read again.
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    syscall(SYS_futex, &word_, FUTEX_WAIT_BITSET_PRIVATE, old,
            deadline == kNever ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

}  // namespace internal
}  // namespace shardcall
