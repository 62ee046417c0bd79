// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/handler_device.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"
#include "shardcall/sharding/base/steady_time.h"

namespace shardcall {
namespace {

constexpr int kLooksBeforeSleep = 2000;
constexpr int64_t kGrain = 256;

}  // namespace

absl::StatusOr<void*> HandlerDevice::Allocate(int64_t bytes) {
  SHARDCALL_CHECK(bytes >= 0);
  if (bytes == 0) return nullptr;
  if (bytes > INT64_MAX - kGrain) {
    return absl::ResourceExhaustedError(absl::StrCat("no ", bytes, " bytes of device memory"));
  }
  bytes = (bytes + kGrain - 1) / kGrain * kGrain;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto kept = idle_.lower_bound(bytes);
  if (kept != idle_.end() && kept->first / 2 <= bytes) {
    void* const memory = kept->second;
    idle_.erase(kept);
    return memory;
  }
  absl::StatusOr<void*> made = AllocateMemory(bytes);
  if (!made.ok() && !idle_.empty()) {  // free idle memory, which has other sizes
    for (const auto& [size, memory] : idle_) {
      sizes_.erase(memory);
      ReleaseMemory(memory);
    }
    idle_.clear();
    made = AllocateMemory(bytes);
  }
  if (made.ok()) sizes_[*made] = bytes;
  return made;
}

void HandlerDevice::Free(void* memory) {
  if (memory == nullptr) return;
  const absl::StatusOr<bool> idle = IsIdle();
  const std::lock_guard<std::mutex> lock(mutex_);
  SHARDCALL_CHECK(sizes_.count(memory) == 1);
  if (idle.ok() && *idle) {
    idle_.emplace(sizes_[memory], memory);
  } else {
    freed_.push_back(memory);
  }
}

void HandlerDevice::Hold(std::shared_ptr<const void> owner) {
  const std::lock_guard<std::mutex> lock(mutex_);
  held_.push_back(std::move(owner));
}

absl::Status HandlerDevice::Wait(absl::Duration deadline) {
  const absl::Duration end = SteadyNow() + deadline;
  for (int look = 0;; ++look) {
    SHARDCALL_ASSIGN_OR_RETURN(const bool idle, IsIdle());
    if (idle) break;
    if (look % 16 == 15 && SteadyNow() >= end) {
      return absl::DeadlineExceededError("the stream is busy past the deadline");
    }
    if (look < kLooksBeforeSleep) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  std::vector<std::shared_ptr<const void>> over;  // released without the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  over.swap(held_);
  for (void* memory : freed_) idle_.emplace(sizes_[memory], memory);
  freed_.clear();
  return absl::OkStatus();
}

void HandlerDevice::ReleaseHeld() {
  if (held_.empty()) return;
  const absl::StatusOr<bool> idle = IsIdle();
  for (std::shared_ptr<const void>& owner : held_) {
    if (idle.ok() && *idle) break;
    new std::shared_ptr<const void>(std::move(owner));  // leaked: still in use
  }
  held_.clear();
}

void HandlerDevice::ReleaseAll() {
  ReleaseHeld();
  const absl::StatusOr<bool> idle = IsIdle();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!idle.ok() || !*idle) {
    new std::shared_ptr<KeptStates>(std::move(kept_));  // leaked: still in use
    return;
  }
  kept_.reset();
  for (const auto& [memory, size] : sizes_) ReleaseMemory(memory);
  sizes_.clear();
}

}  // namespace shardcall
