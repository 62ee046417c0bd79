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

namespace shardcall {
inline namespace internal {

// The object at `place`, which the first thread that needs it makes under the lock that a fork
// waits for: a child finds it made, or not begun. `make` may wait for no other thread.
template <typename T, typename Make>
T& MadeAt(std::atomic<T*>& place, const Make& make) {
  T* made = place.load(std::memory_order_acquire);
  if (made != nullptr) return *made;
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  made = place.load(std::memory_order_relaxed);
  if (made == nullptr) {
    made = make();
    place.store(made, std::memory_order_release);
  }
  return *made;
}

// The one result of `make`, a lambda that returns a pointer, for each place in the source. It is
// never destroyed. It is for what would be a static variable of a function: a child that is forked
// while another thread makes one of these waits for it for ever.
template <typename Make>
auto& MadeAtFirstUse(const Make& make) {
  using T = std::remove_pointer_t<std::invoke_result_t<const Make&>>;
  static constinit std::atomic<T*> object{nullptr};
  return MadeAt(object, make);
}

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_MADE_AT_FIRST_USE_H_
