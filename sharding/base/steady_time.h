// SPDX-License-Identifier: Apache-2.0
// The clock of deadlines: the wall clock may be set while something is awaited.
#ifndef SHARDCALL_SHARDING_BASE_STEADY_TIME_H_
#define SHARDCALL_SHARDING_BASE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace shardcall {

// Since an epoch that is the same for all of a process. Never goes back.
inline absl::Duration SteadyNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_STEADY_TIME_H_
