// SPDX-License-Identifier: Apache-2.0
// A value that several threads use, with its lock.
//
//   Synchronized<std::map<std::string, int>> ages;
//   ages.Lock()->emplace("a", 1);
//   const auto held = ages.Lock();  // for several steps that belong together
//   if (held->count("b") == 0) (*held)["b"] = 2;
#ifndef SHARDCALL_SHARDING_BASE_SYNCHRONIZED_H_
#define SHARDCALL_SHARDING_BASE_SYNCHRONIZED_H_

#include <mutex>
#include <utility>

#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Copies and moves take the lock of the value that they read; each object has a lock of its own. A
// thread may lock one that it holds again. A pointer into the value outlives the lock only where
// the owner says so.
template <typename T>
class Synchronized {
 public:
  template <typename U>
  class Held {
   public:
    Held(std::recursive_mutex& mutex, U& value) : lock_(mutex), value_(&value) {}
    U* operator->() const { return value_; }
    U& operator*() const { return *value_; }

   private:
    std::unique_lock<std::recursive_mutex> lock_;
    U* value_;
  };

  Synchronized() = default;
  Synchronized(const Synchronized& other) : value_(*other.Lock()) {}
  Synchronized(Synchronized&& other) : value_(std::move(*other.Lock())) {}
  Synchronized& operator=(const Synchronized& other) {
    T copy = *other.Lock();  // one lock at a time: two threads may assign crosswise
    *Lock() = std::move(copy);
    return *this;
  }
  Synchronized& operator=(Synchronized&& other) {
    T moved = std::move(*other.Lock());
    *Lock() = std::move(moved);
    return *this;
  }

  Held<T> Lock() { return {mutex_, value_}; }
  Held<const T> Lock() const { return {mutex_, value_}; }

 private:
  mutable std::recursive_mutex mutex_;
  T value_;
};

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_SYNCHRONIZED_H_
