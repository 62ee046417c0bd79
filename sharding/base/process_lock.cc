// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/process_lock.h"

#include <pthread.h>

#include <atomic>

namespace shardcall {
namespace {

// Both hold from before the first static initialiser on: a child that is forked while another
// thread uses the lock for the first time finds nothing half made.
pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
constinit thread_local int depth = 0;  // how often this thread holds it
constinit std::atomic<int64_t> forks_before{0};

// At load, for the same reason.
[[maybe_unused]] const int at_fork =
    pthread_atfork([] { pthread_mutex_lock(&mutex); }, [] { pthread_mutex_unlock(&mutex); },
                   [] {
                     ++forks_before;
                     // The child's thread has another number, with which it could not unlock.
                     mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
                     for (int k = 0; k < depth; ++k) pthread_mutex_lock(&mutex);
                   });

}  // namespace

ProcessLock& ProcessLock::Only() {
  static constinit ProcessLock lock;
  return lock;
}

void ProcessLock::lock() {
  int& held = depth;  // before the lock: a thread's first access may wait for the loader's
  pthread_mutex_lock(&mutex);
  ++held;
}
int64_t ProcessLock::forks() { return forks_before; }
void ProcessLock::unlock() {
  --depth;
  pthread_mutex_unlock(&mutex);
}

}  // namespace shardcall
