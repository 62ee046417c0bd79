// SPDX-License-Identifier: Apache-2.0
// A value that several threads use, under the lock of the process.
//
//   Synchronized<std::map<std::string, int>> ages;
//   ages.Lock()->emplace("a", 1);
//   const auto held = ages.Lock();  // for several steps that belong together
//   if (held->count("b") == 0) (*held)["b"] = 2;
#ifndef SHARDCALL_SHARDING_BASE_SYNCHRONIZED_H_
#define SHARDCALL_SHARDING_BASE_SYNCHRONIZED_H_

#include <mutex>
#include <utility>

#include "shardcall/sharding/base/process_lock.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Copies and moves take the lock. A thread may lock a value that it holds again. A pointer into the
// value outlives the lock only where the owner says so.
template <typename T>
class Synchronized {
 public:
  template <typename U>
  class Held {
   public:
    explicit Held(U& value) : lock_(ProcessLock::Only()), value_(&value) {}
    U* operator->() const { return value_; }
    U& operator*() const { return *value_; }

   private:
    std::unique_lock<ProcessLock> lock_;
    U* value_;
  };

  Synchronized() = default;
  Synchronized(const Synchronized& other) : value_(*other.Lock()) {}
  Synchronized(Synchronized&& other) : value_(std::move(*other.Lock())) {}
  Synchronized& operator=(const Synchronized& other) {
    T copy = *other.Lock();
    *Lock() = std::move(copy);
    return *this;
  }
  Synchronized& operator=(Synchronized&& other) {
    T moved = std::move(*other.Lock());
    *Lock() = std::move(moved);
    return *this;
  }

  Held<T> Lock() { return Held<T>(value_); }
  Held<const T> Lock() const { return Held<const T>(value_); }

 private:
  T value_;
};

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_SYNCHRONIZED_H_
