// SPDX-License-Identifier: Apache-2.0
// The clock for deadlines. It is not the wall clock, which may be set during a wait.
#ifndef SHARDCALL_SHARDING_BASE_STEADY_TIME_H_
#define SHARDCALL_SHARDING_BASE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace shardcall {
inline namespace internal {

// Time since an epoch that is fixed within a process. Never goes back.
inline absl::Duration SteadyNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_STEADY_TIME_H_
