// SPDX-License-Identifier: Apache-2.0
// An accelerator in host memory. Its pointers are no addresses of this process, so
// whoever takes them for host memory crashes; its stream runs what is enqueued
// later, on a thread of its own.
#ifndef SHARDCALL_TESTS_KERNELS_FAKE_DEVICE_H_
#define SHARDCALL_TESTS_KERNELS_FAKE_DEVICE_H_

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shardcall/kernels/ffi/handler_device.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {

class FakeDevice final : public HandlerDevice {
 public:
  FakeDevice() : memory_(kBytes), worker_([this] { Work(); }) {}
  ~FakeDevice() override {
    Unblock();
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return tasks_.empty() && !working_; });
    }
    ReleaseAll();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  // What a handler sees is the stream alone.
  static FakeDevice& Of(void* stream) { return *static_cast<FakeDevice*>(stream); }
  void* stream() override { return this; }
  void Enqueue(std::function<void()> task) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_all();
  }
  // A pointer of the device as memory; for what runs on the stream.
  template <typename T>
  T* At(const void* pointer) {
    const uint64_t offset = reinterpret_cast<uint64_t>(pointer) - kBase;
    SHARDCALL_CHECK(offset < kBytes);
    return reinterpret_cast<T*>(memory_.data() + offset);
  }
  static bool IsDevicePointer(const void* pointer) {
    return reinterpret_cast<uint64_t>(pointer) - kBase < kBytes;
  }
  // The stream stands still.
  void Block() { blocked_ = true; }
  void Unblock() {
    blocked_ = false;
    changed_.notify_all();
  }
  void FailCopies(bool fail) { fail_copies_ = fail; }
  int allocations() const { return allocations_; }
  int in_use() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int>(used_.size());
  }
  int activations() const { return activations_; }

  absl::Status Activate() override {
    ++activations_;
    return absl::OkStatus();
  }
  absl::Status CopyIn(void* to, const void* from, int64_t bytes) override {
    if (fail_copies_) return absl::InternalError("the bus is broken");
    Enqueue([=, this] { std::memcpy(At<char>(to), from, bytes); });
    return absl::OkStatus();
  }
  absl::Status CopyWithin(void* to, const void* from, int64_t bytes) override {
    Enqueue([=, this] { std::memmove(At<char>(to), At<char>(from), bytes); });
    return absl::OkStatus();
  }
  absl::Status CopyOut(void* to, const void* from, int64_t bytes) override {
    std::memcpy(to, At<char>(from), bytes);
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<void*> AllocateMemory(int64_t bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (next_ + bytes > kBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("no ", bytes, " bytes on the device"));
    }
    ++allocations_;
    void* const pointer = reinterpret_cast<void*>(kBase + next_);
    next_ += bytes;
    used_.insert(pointer);
    return pointer;
  }
  void ReleaseMemory(void* memory) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    SHARDCALL_CHECK(used_.erase(memory) == 1);
  }
  absl::StatusOr<bool> IsIdle() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return tasks_.empty() && !working_;
  }

 private:
  static constexpr uint64_t kBase = uint64_t{0x7fff} << 48;  // no process has such addresses
  static constexpr uint64_t kBytes = 1 << 20;

  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stop_ || (!tasks_.empty() && !blocked_); });
      if (stop_) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      working_ = true;
      lock.unlock();
      absl::SleepFor(absl::Microseconds(200));  // the caller is ahead
      task();
      lock.lock();
      working_ = false;
      changed_.notify_all();
    }
  }

  std::vector<char> memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool working_ = false, stop_ = false;
  std::atomic<bool> blocked_{false}, fail_copies_{false};
  std::atomic<int> allocations_{0}, activations_{0};
  uint64_t next_ = 0;
  std::set<void*> used_;
  std::thread worker_;  // last: it uses the rest
};

}  // namespace shardcall

#endif  // SHARDCALL_TESTS_KERNELS_FAKE_DEVICE_H_
