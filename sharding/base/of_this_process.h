// SPDX-License-Identifier: Apache-2.0
// Objects that all threads of a process share.
#ifndef SHARDCALL_SHARDING_BASE_OF_THIS_PROCESS_H_
#define SHARDCALL_SHARDING_BASE_OF_THIS_PROCESS_H_

#include <pthread.h>

#include <atomic>
#include <mutex>

#include "shardcall/sharding/base/process_lock.h"

namespace shardcall::inline internal {

template <typename T>
struct ObjectOfProcess {
  static inline constinit std::atomic<T*> object{nullptr};
  // From load on, and the object is made under the lock that a fork waits for: a child that is
  // forked at its first use finds it made, or not begun.
  static inline const int at_fork = pthread_atfork(nullptr, nullptr, [] {
    if (object.load(std::memory_order_relaxed) != nullptr) object.store(new T);
  });
};

// The one T of this process. It is never destroyed, since threads may use it while the process
// exits. A child of fork() has a new one: a thread that is not in the child may have held a lock of
// the parent's. Making a T may wait for no other thread.
template <typename T>
T* OfThisProcess() {
  std::atomic<T*>& object = ObjectOfProcess<T>::object;
  T* made = object.load(std::memory_order_acquire);
  if (made != nullptr) return made;
  (void)&ObjectOfProcess<T>::at_fork;
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  made = object.load(std::memory_order_relaxed);
  if (made == nullptr) {
    made = new T;
    object.store(made, std::memory_order_release);
  }
  return made;
}

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_SHARDING_BASE_OF_THIS_PROCESS_H_
