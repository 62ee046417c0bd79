// SPDX-License-Identifier: Apache-2.0
// Objects that all threads of a process share.
#ifndef SHARDCALL_SHARDING_BASE_OF_THIS_PROCESS_H_
#define SHARDCALL_SHARDING_BASE_OF_THIS_PROCESS_H_

#include <pthread.h>

#include <atomic>

#include "shardcall/sharding/base/made_at_first_use.h"

namespace shardcall {
inline namespace internal {

template <typename T>
struct ObjectOfProcess {
  static inline constinit std::atomic<T*> object{nullptr};
  // From load on, so that no fork comes between it and the object.
  static inline const int at_fork = pthread_atfork(nullptr, nullptr, [] {
    if (object.load(std::memory_order_relaxed) != nullptr) object.store(new T);
  });
};

// The one T of this process. It is never destroyed, since threads may use it while the process
// exits. A child of fork() has a new one: a thread that is not in the child may have held a lock of
// the parent's. Making a T may wait for no other thread.
template <typename T>
T* OfThisProcess() {
  (void)&ObjectOfProcess<T>::at_fork;
  return &MadeAt(ObjectOfProcess<T>::object, [] { return new T; });
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_OF_THIS_PROCESS_H_
