// SPDX-License-Identifier: Apache-2.0
// Values by key, each made by the first thread that asks for it.
//
//   MadeOnce<std::string, std::shared_ptr<Plan>> plans;
//   SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan,
//                              plans.GetOrMake("a", [] { return MakePlan("a"); }));
#ifndef SHARDCALL_SHARDING_BASE_MADE_ONCE_H_
#define SHARDCALL_SHARDING_BASE_MADE_ONCE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "shardcall/sharding/base/process_lock.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// `Value` is a pointer that is null by default. Any thread may call it.
template <typename Key, typename Value>
class MadeOnce {
 public:
  // All are forgotten where there would be more than `most`.
  explicit MadeOnce(size_t most = SIZE_MAX) : most_(most) {}

  // The value that was made for `key` before, else the result of `make`, an absl::StatusOr<Value>.
  // Other threads that ask for it meanwhile wait; a child of fork() does not, if it does not have
  // the thread. Failures are not kept.
  template <typename Maker>
  absl::StatusOr<Value> GetOrMake(const Key& key, const Maker& make) {
    Value value = {};
    const std::shared_ptr<Entry> entry = Find(key, &value);
    if (value != nullptr) return value;
    // Not under the lock of the process: it may take long, and wait for other threads.
    const std::lock_guard<std::mutex> making(entry->making);
    Find(key, &value);
    if (value != nullptr) return value;
    absl::StatusOr<Value> made = make();
    if (made.ok()) Keep(key, entry, *made);
    return made;
  }

 private:
  struct Entry {
    const int64_t forks = ProcessLock::forks();
    std::mutex making;
    Value value = {};  // under the lock of the process
  };
  using Entries = std::map<Key, std::shared_ptr<Entry>>;

  // The entry of a key, and its value if that is made.
  std::shared_ptr<Entry> Find(const Key& key, Value* value) {
    Entries forgotten;  // what the values own is freed without the lock
    const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
      *value = found->second->value;
      // What a parent was making is not going to end here.
      if (*value != nullptr || found->second->forks == ProcessLock::forks()) return found->second;
    } else if (entries_.size() >= most_) {
      forgotten.swap(entries_);
    }
    return entries_[key] = std::make_shared<Entry>();
  }

  void Keep(const Key& key, const std::shared_ptr<Entry>& entry, const Value& value) {
    const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
    entry->value = value;
    entries_[key] = entry;  // it may have been forgotten meanwhile
  }

  const size_t most_;
  Entries entries_;  // under the lock of the process
};

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_MADE_ONCE_H_
