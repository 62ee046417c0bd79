// SPDX-License-Identifier: Apache-2.0
// The clock for deadlines. It is not the wall clock, which may be set during a wait.
#ifndef SHARDCALL_SHARDING_BASE_STEADY_TIME_H_
#define SHARDCALL_SHARDING_BASE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace shardcall {
inline namespace internal {

// The longest that a condition variable can wait for: clocks count nanoseconds in 64 bits, so a
// time further ahead would overflow.
inline constexpr absl::Duration kLongestTimedWait = absl::Hours(24 * 365 * 100);

// Time since an epoch that is fixed within a process. Never goes back.
inline absl::Duration SteadyNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_STEADY_TIME_H_
