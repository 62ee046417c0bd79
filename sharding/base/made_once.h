// SPDX-License-Identifier: Apache-2.0
// Values by key, each made by the first thread that asks for it.
//
//   MadeOnce<std::string, std::shared_ptr<Plan>> plans;
//   SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<Plan> plan,
//                              plans.GetOrMake("a", [] { return MakePlan("a"); }));
#ifndef SHARDCALL_SHARDING_BASE_MADE_ONCE_H_
#define SHARDCALL_SHARDING_BASE_MADE_ONCE_H_

#include <unistd.h>

#include <cstddef>
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
  // Beyond `most` values all are forgotten.
  explicit MadeOnce(size_t most = SIZE_MAX) : most_(most) {}

  // The value that was made for `key` before, else the result of `make`, an absl::StatusOr<Value>.
  // Other threads that ask for it meanwhile wait; a child of fork() does not, if it does not have
  // the thread. Failures are not kept.
  template <typename Maker>
  absl::StatusOr<Value> GetOrMake(const Key& key, const Maker& make) {
    const std::shared_ptr<Entry> entry = EntryOf(key);
    if (Value value = entry->Get(); value != nullptr) return value;
    const std::lock_guard<std::mutex> making(entry->making);
    if (Value value = entry->Get(); value != nullptr) return value;
    absl::StatusOr<Value> made = make();
    if (!made.ok()) return made;
    const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
    entry->value = *made;
    return made;
  }

 private:
  struct Entry {
    // Not while the value is made: that may take long, and wait for other threads.
    Value Get() const {
      const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
      return value;
    }
    const pid_t process = getpid();
    std::mutex making;
    Value value = {};  // under the lock of the process
  };

  std::shared_ptr<Entry> EntryOf(const Key& key) {
    const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
    if (entries_.size() > most_) entries_.clear();
    std::shared_ptr<Entry>& entry = entries_[key];
    // What the parent was making is not going to end here.
    if (entry == nullptr || (entry->value == nullptr && entry->process != getpid())) {
      entry = std::make_shared<Entry>();
    }
    return entry;
  }

  const size_t most_;
  std::map<Key, std::shared_ptr<Entry>> entries_;  // under the lock of the process
};

}  // namespace shardcall

#endif  // SHARDCALL_SHARDING_BASE_MADE_ONCE_H_
