// SPDX-License-Identifier: Apache-2.0
// The threads on which devices run. They are kept for some time, since starting one costs more than
// a small program computes.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_DEVICE_THREADS_H_
#define SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_DEVICE_THREADS_H_

#include <functional>

namespace shardcall {
inline namespace internal {

// Runs `work` on an idle thread, or on a new one. Nobody waits for it, so `work` must say itself
// when it is done, and must own what it uses. Any thread may call this, also after fork(). Throws
// std::system_error if a thread is needed and cannot be started.
void RunOnDeviceThread(std::function<void()> work);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_EXECUTE_DEVICE_THREADS_H_
