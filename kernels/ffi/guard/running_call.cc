// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/guard/running_call.h"

#include <cstdio>

namespace shardcall {
inline namespace internal {
namespace {

std::atomic<bool> any_yet{false};

thread_local const RunningCall* running = nullptr;
thread_local CallWatch* watch = nullptr;

}  // namespace

RunningCall::RunningCall(const char* what, absl::string_view name, absl::string_view where,
                         int device)
    : what_(what),
      name_(name),
      where_(where),
      device_(device),
      before_(std::exchange(running, this)) {
  // Read before writing: a cache line that every call writes would bounce between cores.
  if (!any_yet.load(std::memory_order_relaxed)) any_yet.store(true, std::memory_order_relaxed);
}

bool RunningCall::AnyYet() { return any_yet.load(std::memory_order_relaxed); }

RunningCall::~RunningCall() { running = before_; }

const RunningCall* RunningCall::OfThisThread() { return running; }

void RunningCall::Describe(const char* did, char* text, size_t size) const {
  const auto length = [](absl::string_view s) { return static_cast<int>(s.size()); };
  int n = std::snprintf(text, size, "%s of \"%.*s\" %s", what_, length(name_), name_.data(), did);
  if (!where_.empty() && n >= 0 && static_cast<size_t>(n) < size) {
    n += std::snprintf(text + n, size - n, " at %%%.*s", length(where_), where_.data());
  }
  if (device_ >= 0 && n >= 0 && static_cast<size_t>(n) < size) {
    std::snprintf(text + n, size - n, " on device %d", device_);
  }
}

CallWatch::Scope::Scope(CallWatch* here) { watch = here; }
CallWatch::Scope::~Scope() { watch = nullptr; }
CallWatch* CallWatch::OfThisThread() { return watch; }

const HostHandler& CallWatch::Keep(const HandlerEntry& entry) {
  for (const auto& [known, handler] : handlers_) {
    if (known == &entry) return handler;
  }
  return handlers_.emplace_back(&entry, entry.host).second;
}

const std::map<int64_t, void*>* CallWatch::Keep(const std::map<int64_t, void*>& user_data) {
  if (user_data_.size() != user_data.size()) user_data_ = user_data;
  return &user_data_;
}

}  // namespace internal
}  // namespace shardcall
