// SPDX-License-Identifier: Apache-2.0
// Records what external code the threads of this process are running, for reports when it crashes
// or never returns.
#ifndef SHARDCALL_KERNELS_FFI_GUARD_RUNNING_CALL_H_
#define SHARDCALL_KERNELS_FFI_GUARD_RUNNING_CALL_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/handler.h"

namespace shardcall {
inline namespace internal {

// During its lifetime, this thread runs `what` of `name`: "the handler" of a target, "the entry"
// of a plugin. The texts must outlive it.
class RunningCall {
 public:
  RunningCall(const char* what, absl::string_view name, absl::string_view where = "",
              int device = -1);
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;
  ~RunningCall();

  // Whether any thread of this process has ever had one. May be called in a signal handler.
  static bool AnyYet();
  // The innermost one of this thread, or null. May be called in a signal handler.
  static const RunningCall* OfThisThread();
  // Writes "the handler of "t" ", then `did`, then "at %c on device 1", cut to `size`. May be
  // called in a signal handler.
  void Describe(const char* did, char* text, size_t size) const;

 private:
  const char* const what_;
  const absl::string_view name_, where_;
  const int device_;
  const RunningCall* const before_;
};

// The handler calls of one thread, as observed by another.
class CallWatch {
 public:
  // During its lifetime, `watch` observes the calls of this thread.
  class Scope {
   public:
    explicit Scope(CallWatch* watch);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();
  };
  static CallWatch* OfThisThread();  // null: not observed

  // Copies of the handler, and of its registry's user data, that live as long as the watch: a
  // handler that does not return may outlive its registry.
  const HostHandler& Keep(const HandlerEntry& entry);
  const std::map<int64_t, void*>* Keep(const std::map<int64_t, void*>& user_data);

  // Both texts must live as long as the running program.
  void Begin(const std::string* target, const std::string* instruction) {
    target_.store(target, std::memory_order_relaxed);
    instruction_.store(instruction, std::memory_order_relaxed);
    calls_.fetch_add(1, std::memory_order_release);
  }
  void End() { calls_.fetch_add(1, std::memory_order_release); }

  // Odd during a handler call; each call has another number.
  uint64_t calls() const { return calls_.load(std::memory_order_acquire); }
  // Of the last call that began.
  const std::string& target() const { return *target_.load(std::memory_order_relaxed); }
  const std::string& instruction() const { return *instruction_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> calls_{0};
  std::atomic<const std::string*> target_{nullptr}, instruction_{nullptr};
  // Used by this thread only. References to the kept objects stay valid.
  std::deque<std::pair<const HandlerEntry*, HostHandler>> handlers_;
  std::map<int64_t, void*> user_data_;
};

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_KERNELS_FFI_GUARD_RUNNING_CALL_H_
