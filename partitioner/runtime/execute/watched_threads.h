// SPDX-License-Identifier: Apache-2.0
// Runs device threads that can be stopped, and abandoned if they do not return.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_WATCHED_THREADS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_WATCHED_THREADS_H_

#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/program.h"

namespace shardcall {
inline namespace internal {

// What the thread of device d runs. It writes to `running` where it is.
using DeviceBody = std::function<void(int d, RunningSteps* running)>;

// Calls body(d) for each d below `num_devices` on its own thread, and waits until all have
// returned. `stop` is called once, with the error that is then the result, if
//   - one of them is in a handler for longer than `deadline`: E319;
//   - the StopScope of the calling thread ends the call: E346, which says where a device is. At its
//     limit, devices that are all in handlers and collectives are left to their own deadlines;
//   - the process exits: E346;
//   - a thread cannot be started: E315, or E314 if it is memory that is short.
// Threads that are in a handler for too long, or do not end soon after `stop`, are abandoned:
// `body` and its captures live until the last of them has returned, and it must use nothing else
// after `stop`. `name` is the program's, for errors.
absl::Status RunWatched(const std::string& name, int num_devices, absl::Duration deadline,
                        DeviceBody body, absl::FunctionRef<void(const absl::Status&)> stop);

// Whether the devices of a program need such threads: handlers may not return, and neither may
// array operations when the call is to stop.
bool NeedsWatch(const DeviceProgram& program);

// The number of threads of this process that were abandoned, here or while a library was being
// loaded, and have not returned yet. A process with such threads must not run exit handlers.
int ThreadsLeftBehind();

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_WATCHED_THREADS_H_
