// SPDX-License-Identifier: Apache-2.0
// Objects that all threads of a process share.
#ifndef SHARDCALL_SHARDING_BASE_OF_THIS_PROCESS_H_
#define SHARDCALL_SHARDING_BASE_OF_THIS_PROCESS_H_

#include <pthread.h>

namespace shardcall::inline internal {

// The one T of this process. It is never destroyed, since threads may use it while the process
// exits. A child of fork() has a new one: a thread that is not in the child may have held a lock of
// the parent's.
template <typename T>
T*& OfThisProcess() {
  static T* object = [] {
    pthread_atfork(nullptr, nullptr, [] { OfThisProcess<T>() = new T; });
    return new T;
  }();
  return object;
}

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_SHARDING_BASE_OF_THIS_PROCESS_H_
