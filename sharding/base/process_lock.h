// SPDX-License-Identifier: Apache-2.0
// One lock of the process for what its threads share and use briefly.
//
//   const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
#ifndef SHARDCALL_SHARDING_BASE_PROCESS_LOCK_H_
#define SHARDCALL_SHARDING_BASE_PROCESS_LOCK_H_

#include <cstdint>

#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// A thread may lock it again. fork() waits for it: in the child, which does not have the other
// threads, it is free, and what it guards is as they left it. So nobody may wait for another thread
// while he holds it.
class ProcessLock {
 public:
  static ProcessLock& Only();
  void lock();
  void unlock();
  // How many forks lie between this process and the first one that loaded this library.
  static int64_t forks();

 private:
  constexpr ProcessLock() = default;
};

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_PROCESS_LOCK_H_
