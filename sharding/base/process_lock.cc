// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/base/process_lock.h"

#include <pthread.h>

#include <mutex>

namespace shardcall {
namespace {

std::recursive_mutex* mutex = new std::recursive_mutex;
thread_local int depth = 0;  // how often this thread holds it

}  // namespace

ProcessLock::ProcessLock() {
  pthread_atfork([] { mutex->lock(); }, [] { mutex->unlock(); },
                 [] {
                   // The child's thread has another number, with which it could not unlock.
                   mutex = new std::recursive_mutex;
                   for (int k = 0; k < depth; ++k) mutex->lock();
                 });
}

ProcessLock& ProcessLock::Only() {
  static auto* const lock = new ProcessLock;
  return *lock;
}

void ProcessLock::lock() {
  mutex->lock();
  ++depth;
}
void ProcessLock::unlock() {
  --depth;
  mutex->unlock();
}

}  // namespace shardcall
