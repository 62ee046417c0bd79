// SPDX-License-Identifier: Apache-2.0
// Runs device threads that can be abandoned if a handler does not return.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_WATCHED_THREADS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_WATCHED_THREADS_H_

#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace shardcall::inline internal {

// Calls body(d) for each d below `num_devices` on its own thread, and waits until all have
// returned. If one of them is in a handler for longer than `deadline`, the result is E319, and
// `stop` is called with it once. Threads that are still in a handler then, or that do not end
// within another `deadline`, are abandoned: `body` and its captures live until the last of them
// has returned, and it must use nothing else after `stop`. E315, after `stop`, if a thread cannot
// be started.
absl::Status RunWatched(int num_devices, absl::Duration deadline, std::function<void(int)> body,
                        absl::FunctionRef<void(const absl::Status&)> stop);

// The number of threads of this process that were abandoned, here or while a library was being
// loaded, and have not returned yet. A process with such threads must not run exit handlers.
int ThreadsLeftBehind();

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_WATCHED_THREADS_H_
