// SPDX-License-Identifier: Apache-2.0
// The threads on which handlers of the typed FFI may schedule work: one per core, started at the
// first task and kept until the process ends.
#ifndef SHARDCALL_KERNELS_FFI_THREAD_POOL_H_
#define SHARDCALL_KERNELS_FFI_THREAD_POOL_H_

#include <functional>

namespace shardcall {
inline namespace internal {

int FfiPoolThreads();
// False if no thread can be started; the task is then not run.
bool ScheduleOnFfiPool(std::function<void()> task);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_THREAD_POOL_H_
