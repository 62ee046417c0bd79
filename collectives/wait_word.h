// SPDX-License-Identifier: Apache-2.0
// A 32-bit word that threads sleep on until it changes or a deadline passes,
// without spinning, so that hundreds of devices can share two cores.
#ifndef SHARDCALL_COLLECTIVES_WAIT_WORD_H_
#define SHARDCALL_COLLECTIVES_WAIT_WORD_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "absl/time/time.h"

namespace shardcall {

// A point of the monotonic clock; kNever waits for ever.
using MonotonicTime = std::chrono::steady_clock::time_point;
inline constexpr MonotonicTime kNever = MonotonicTime::max();

// Now plus the duration; kNever if that is infinite or out of range.
MonotonicTime DeadlineAfter(absl::Duration duration);

class WaitWord {
 public:
  explicit WaitWord(uint32_t value) : word_(value) {}

  uint32_t Load() const { return word_.load(std::memory_order_acquire); }
  // Changes the word without waking anybody.
  void Store(uint32_t value) { word_.store(value, std::memory_order_release); }
  void StoreAndWakeAll(uint32_t value);

  // Returns the word once it is not `old`, or `old` if the deadline has passed.
  uint32_t AwaitChange(uint32_t old, MonotonicTime deadline) const;

 private:
  std::atomic<uint32_t> word_;
};

}  // namespace shardcall

#endif  // SHARDCALL_COLLECTIVES_WAIT_WORD_H_
