// SPDX-License-Identifier: Apache-2.0
// An object of the process that is made when it is first needed.
//
//   const std::vector<Row>& rows = MadeAtFirstUse([] { return new std::vector<Row>(ReadRows()); });
#ifndef SHARDCALL_SHARDING_BASE_MADE_AT_FIRST_USE_H_
#define SHARDCALL_SHARDING_BASE_MADE_AT_FIRST_USE_H_

#include <atomic>
#include <mutex>
#include <type_traits>

#include "shardcall/sharding/base/process_lock.h"

namespace shardcall::inline internal {

// The one result of `make`, a lambda that returns a pointer, for each place in the source. It is
// never destroyed. Unlike a static variable of a function, it is made under the lock that a fork
// waits for, so that a child finds it made, or not begun; a child that is forked while another
// thread makes a static variable waits for it for ever. `make` may wait for no other thread.
template <typename Make>
auto& MadeAtFirstUse(const Make& make) {
  using T = std::remove_pointer_t<std::invoke_result_t<const Make&>>;
  static constinit std::atomic<T*> object{nullptr};
  T* made = object.load(std::memory_order_acquire);
  if (made != nullptr) return *made;
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  made = object.load(std::memory_order_relaxed);
  if (made == nullptr) {
    made = make();
    object.store(made, std::memory_order_release);
  }
  return *made;
}

}  // namespace shardcall::inline internal

#endif  // SHARDCALL_SHARDING_BASE_MADE_AT_FIRST_USE_H_
