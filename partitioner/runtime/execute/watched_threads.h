// SPDX-License-Identifier: Apache-2.0
// Threads of devices that are left behind where a handler does not return.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_WATCHED_THREADS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_WATCHED_THREADS_H_

#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace shardcall {

// Calls body(d) for each d below `num_devices` on a thread of its own, and waits until
// all have returned. A handler that one of them has been in for longer than `deadline` is
// E319: `stop` is called with it once, and the result is it. Threads that are still in a
// handler for so long, or do not end within as long again, are left behind: `body` and
// what it captures live until the last of them has returned, and it must touch nothing
// else once it has been stopped. E315, after `stop`, where a thread cannot be started.
absl::Status RunWatched(int num_devices, absl::Duration deadline, std::function<void(int)> body,
                        absl::FunctionRef<void(const absl::Status&)> stop);

// How many threads of this process were left behind, here or in a library that was being
// loaded, and have not returned since. One that has some must not run what is done at an
// exit.
int ThreadsLeftBehind();

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_WATCHED_THREADS_H_
